//! Files that are templates of other programs, and no YAML before these have rendered them: told by marks that nothing else has, so that one
//! note is said of each, with the way out, and not what is wrong with it as YAML.

/// A kind of template.
#[derive(Debug)]
pub struct Template {
    /// `templates of ytt`
    pub what: &'static str,
    pub hint: &'static str,
    /// Whether a line is of this kind of template alone.
    is_mark: fn(&str) -> bool,
    /// Whether the mark may stand in YAML that is meant as such, and be a comment or text there.
    may_be_yaml: bool,
}

const OF_TERRAFORM: &str = "lint what `templatefile` renders: write it into a file, and name that";

static TEMPLATES: [Template; 5] = [
    Template {
        what: "templates of ytt",
        hint: "lint what it renders: ytt -f FILE | cutlist lint -",
        is_mark: is_of_ytt,
        may_be_yaml: false,
    },
    Template { what: "templates of Terraform", hint: OF_TERRAFORM, is_mark: calls_terraform, may_be_yaml: false },
    Template { what: "templates of Terraform", hint: OF_TERRAFORM, is_mark: is_of_terraform, may_be_yaml: true },
    Template {
        what: "templates of Jinja",
        hint: "render it first, and lint what comes of it: ... | cutlist lint -",
        is_mark: is_of_jinja,
        may_be_yaml: true,
    },
    Template {
        what: "templates of Go",
        hint: "render it first, such as by Helm or kOps, and lint what comes of it: ... | cutlist lint -",
        is_mark: is_of_go,
        may_be_yaml: true,
    },
];

/// What the text is a template of. `is_broken` says that the text is no YAML as it stands.
pub fn of(text: &str, is_broken: bool) -> Option<&'static Template> {
    // Little is said anyway of text that has nothing to do with definitions.
    if !text.contains("karpenter") {
        return None;
    }
    let is_one = |template: &&Template| text.lines().any(|line| (template.is_mark)(line.trim()));
    TEMPLATES.iter().filter(|template| is_broken || !template.may_be_yaml).find(is_one)
}

fn is_of_ytt(line: &str) -> bool {
    const BEGINNINGS: [&str; 5] = ["#@data/values", "#@schema/", "#@overlay/", "#@library/", "#@ load(\"@"];
    BEGINNINGS.iter().any(|beginning| line.starts_with(beginning)) || line.contains(": #@ data.values.")
}

/// A function that makes YAML of a value.
fn calls_terraform(line: &str) -> bool {
    const CALLS: [&str; 3] = ["${jsonencode(", "${yamlencode(", "${templatefile("];
    !line.starts_with('#') && CALLS.iter().any(|call| line.contains(call))
}

/// A directive on a line of its own.
fn is_of_terraform(line: &str) -> bool {
    let directive = line.strip_prefix("%{").map(|rest| rest.trim_start_matches('~').trim_start());
    directive.is_some_and(|rest| begins_with_word(rest, &["if", "for", "else", "endif", "endfor"]))
}

fn is_of_jinja(line: &str) -> bool {
    line.starts_with("{%") && line.contains("%}")
}

/// An action that stands for no value.
fn is_of_go(line: &str) -> bool {
    let action = line.strip_prefix("{{").filter(|_| line.ends_with("}}"));
    let action = action.map(|rest| rest.trim_start_matches('-').trim_start());
    action.is_some_and(|rest| begins_with_word(rest, &["if", "range", "with", "else", "end", "define", "block"]))
}

fn begins_with_word(text: &str, words: &[&str]) -> bool {
    let word = text.split(|character: char| !character.is_ascii_alphanumeric()).next().unwrap_or_default();
    words.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const POOL: &str = "apiVersion: karpenter.sh/v1\nkind: NodePool\n";

    #[test]
    fn templates_are_told_by_their_marks() {
        for (lines, what) in [
            ("#@ load(\"@ytt:data\", \"data\")\n", "templates of ytt"),
            ("spec: { weight: 1 }\nx: #@ data.values.x\n", "templates of ytt"),
            ("%{ for zone in zones ~}\n- ${zone}\n%{ endfor ~}\n", "templates of Terraform"),
            ("  %{~ if spot }\n", "templates of Terraform"),
            ("  values: ${jsonencode(zones)}\n", "templates of Terraform"),
            ("  {% if spot %}\n", "templates of Jinja"),
            ("{{- range $name, $group := Groups }}\n", "templates of Go"),
            ("  {{ end }}\n", "templates of Go"),
        ] {
            assert_eq!(of(&format!("{POOL}{lines}"), true).map(|it| it.what), Some(what), "{lines}");
            assert!(of(lines, true).is_none(), "it is nothing of ours: {lines}");
        }
        for lines in
            ["metadata: { name: {{ name }} }\n", "#@ a comment\n", "# {{ end }} of it\n", "a: \"%{http_code}\"\n"]
        {
            assert!(of(&format!("{POOL}{lines}"), true).is_none(), "{lines}");
        }
        assert!(of(&format!("{POOL}a: |\n  {{{{ end }}}}\n"), false).is_none(), "it is text of good YAML");
    }
}
