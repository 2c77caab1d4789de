//! JUnit: a suite for each file. A finding that makes lint fail is a test that failed, any other one a test that
//! passed, and a suppressed one a test that was skipped.
//!
//! There is no standard but what programs read. `file` and `line` of a test, `message` of one that was skipped and `skipped` at the top are
//! read by GitLab, GitHub's actions and Jenkins; strict schemas that are older, such as Jenkins' `jenkins-junit.xsd`, do not know them.

use std::collections::BTreeMap;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::LintReport;
use crate::definitions::Diagnostic;
use crate::render::terminal::{clean, clean_lines};

pub fn junit(report: &LintReport) -> String {
    let mut junit = Report::new("cutlist lint");
    for (path, of_file) in super::by_file(report) {
        let mut suite = TestSuite::new(clean(path));
        let mut names = Names::default();
        for diagnostic in of_file.counted {
            let mut status = TestCaseStatus::success();
            if report.fails(diagnostic) {
                status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_message(clean_lines(&diagnostic.message)).set_type(diagnostic.code.clone());
                status.set_description(said(diagnostic));
            }
            let mut case = case(diagnostic, names.next(diagnostic), status);
            if !report.fails(diagnostic) {
                case.set_system_out(said(diagnostic));
            }
            suite.add_test_case(case);
        }
        for suppressed in of_file.suppressed {
            let mut status = TestCaseStatus::skipped();
            status.set_message(clean_lines(&suppressed.reason));
            suite.add_test_case(case(&suppressed.diagnostic, names.next(&suppressed.diagnostic), status));
        }
        if suite.test_cases.is_empty() {
            let mut case = TestCase::new("no findings", TestCaseStatus::success());
            case.set_classname(clean(path));
            suite.add_test_case(case);
        }
        junit.add_test_suite(suite);
    }
    // The report holds texts and counts only, and these can always be written.
    junit.to_string().unwrap_or_default()
}

/// How often each name was given. Viewers know a test again by its name and its file.
#[derive(Default)]
struct Names(BTreeMap<String, usize>);

impl Names {
    /// A name that no other case of the file has, and that stays when lines are moved.
    fn next(&mut self, diagnostic: &Diagnostic) -> String {
        let object = diagnostic.object.as_deref().map(|object| format!(" of {}", clean(object))).unwrap_or_default();
        let name = format!("{} {}{object}", diagnostic.code, diagnostic.rule);
        let given = self.0.entry(name.clone()).or_default();
        *given += 1;
        if *given == 1 { name } else { format!("{name} #{given}") }
    }
}

fn case(diagnostic: &Diagnostic, name: String, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(name, status);
    case.set_classname(clean(&diagnostic.file));
    case.extra.insert("file".into(), clean(&diagnostic.file).into());
    case.extra.insert("line".into(), diagnostic.span.line.to_string().into());
    case
}

fn said(diagnostic: &Diagnostic) -> String {
    let Diagnostic { file, span, severity, message, code, hint, .. } = diagnostic;
    let hint = hint.as_ref().map(|hint| format!("\nhelp: {hint}")).unwrap_or_default();
    let severity = severity.word();
    clean_lines(&format!("{file}:{}:{}: {severity}: {message} [{code}]{hint}", span.line, span.column))
}
