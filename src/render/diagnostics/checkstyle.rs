//! Checkstyle's XML, which many viewers of findings read.

use std::io;

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, Event};

use super::LintReport;
use crate::definitions::{Diagnostic, Severity};
use crate::render::terminal::clean;

pub fn checkstyle(report: &LintReport) -> String {
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    // The writer writes to memory, which does not fail.
    match write(report, &mut writer) {
        Ok(()) => String::from_utf8_lossy(&writer.into_inner()).into_owned() + "\n",
        Err(_) => String::new(),
    }
}

fn write(report: &LintReport, writer: &mut Writer<Vec<u8>>) -> io::Result<()> {
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let root = writer.create_element("checkstyle").with_attribute(("version", "4.3"));
    root.write_inner_content(|writer| {
        for (path, of_file) in super::by_file(report) {
            let path = clean(path);
            let file = writer.create_element("file").with_attribute(("name", path.as_str()));
            if of_file.counted.is_empty() {
                file.write_empty()?;
                continue;
            }
            file.write_inner_content(|writer| {
                for diagnostic in &of_file.counted {
                    error(diagnostic, writer)?;
                }
                Ok(())
            })?;
        }
        Ok(())
    })?;
    Ok(())
}

fn error(diagnostic: &Diagnostic, writer: &mut Writer<Vec<u8>>) -> io::Result<()> {
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "info",
    };
    let message = match &diagnostic.hint {
        Some(hint) => format!("{} ({hint})", diagnostic.message),
        None => diagnostic.message.clone(),
    };
    let (line, column) = (diagnostic.span.line.to_string(), diagnostic.span.column.to_string());
    let source = format!("cutlist.{}", diagnostic.code);
    let message = clean(&message.replace('\n', " "));
    writer
        .create_element("error")
        .with_attributes([
            ("line", line.as_str()),
            ("column", column.as_str()),
            ("severity", severity),
            ("message", message.as_str()),
            ("source", source.as_str()),
        ])
        .write_empty()?;
    Ok(())
}
