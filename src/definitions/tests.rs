//! The reader on whole files.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::api::source::Standing;

fn read_text(text: &str) -> Definitions {
    read(&[SourceFile::new("a.yaml", text)], &GivenVariables::default())
}

fn shown(definitions: &Definitions) -> Vec<String> {
    let line = |d: &Diagnostic| {
        format!(
            "{}:{}:{} {} {} [{}]",
            d.file,
            d.span.line,
            d.span.column,
            d.rule,
            d.message,
            d.hint.as_deref().unwrap_or("")
        )
    };
    definitions.diagnostics.iter().map(line).collect()
}

const POOL: &str = "apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: default
spec:
  template:
    spec:
      nodeClassRef: { group: karpenter.k8s.aws, kind: EC2NodeClass, name: default }
      requirements:
        - key: kubernetes.io/arch
          operator: In
          values: [amd64]
";

const CLASS: &str = "apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata:
  name: default
spec:
  role: node-${CLUSTER_NAME}
  amiSelectorTerms: [{ alias: al2023@v20240807 }]
  subnetSelectorTerms: [{ tags: { a: b } }]
  securityGroupSelectorTerms: [{ tags: { a: b } }]
";

/// Paths of the settings are those of the repository that somebody applied, and variables were replaced by who did.
#[test]
fn what_a_cluster_has_is_read_as_it_is() {
    let settings = "apiVersion: cutlist.dev/v1alpha1
kind: Settings
metadata: { name: demo }
spec: { paths: [nodes], variables: { CLUSTER_NAME: other } }
";
    let files = |file: fn(&str, &str) -> SourceFile| {
        [file("cutlist.yaml", settings), file("nodepools/a.yaml", POOL), file("ec2nodeclasses/a.yaml", CLASS)]
    };
    let applied = read(&files(|path, text| SourceFile::applied(path, text)), &GivenVariables::default());
    assert_eq!(shown(&applied), Vec::<String>::new());
    assert_eq!((applied.node_pools.len(), applied.node_classes.len()), (1, 1));
    assert_eq!(applied.node_classes[0].value.spec.role.as_deref(), Some("node-${CLUSTER_NAME}"));
    let own = read(&files(|path, text| SourceFile::new(path, text)), &GivenVariables::default());
    assert_eq!((own.node_pools.len(), own.node_classes.len()), (0, 0));
}

#[test]
fn every_schema_compiles() {
    for kind in kinds::Kind::ALL {
        assert_eq!(schema::error(kind), None, "{}", kind.name());
    }
}

#[test]
fn reads_typed_values() {
    let variables = BTreeMap::from([("CLUSTER_NAME".to_owned(), "demo".to_owned())]);
    let content = format!("{POOL}---\n{CLASS}").into_bytes();
    let definitions =
        read(&[SourceFile::new("a.yaml", content)], &GivenVariables { typed: variables, ..GivenVariables::default() });
    assert_eq!(shown(&definitions), Vec::<String>::new());
    assert_eq!(definitions.node_pools[0].value.metadata.name.as_deref(), Some("default"));
    assert_eq!(definitions.node_classes[0].value.spec.role.as_deref(), Some("node-demo"));
    assert_eq!(definitions.node_classes[0].line, 14);
}

const FLUX: &str = "apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: { name: nodes, namespace: flux-system }
spec:
  path: ./nodes
  sourceRef: { kind: GitRepository, name: flux-system }
  postBuild: { substitute: { CLUSTER_NAME: blue } }
";

#[test]
fn flux_is_told_its_variables_in_the_files() {
    let role = |files: &[SourceFile], typed: &[(&str, &str)]| {
        let typed = typed.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let definitions = read(files, &GivenVariables { typed, ..GivenVariables::default() });
        definitions.node_classes[0].value.spec.role.clone().unwrap()
    };
    let flux = SourceFile::new("clusters/blue.yaml", FLUX);
    let plain = [flux.clone(), SourceFile::new("nodes/class.yaml", CLASS)];
    assert_eq!(role(&plain, &[]), "node-blue");
    assert_eq!(role(&plain, &[("CLUSTER_NAME", "typed")]), "node-typed");
    let elsewhere = [flux.clone(), SourceFile::new("other/class.yaml", CLASS)];
    assert_eq!(role(&elsewhere, &[]), "node-${CLUSTER_NAME}");
    // What is built there counts, and not where its text lies.
    let built = [
        flux,
        SourceFile::new("base/class.yaml", CLASS),
        SourceFile::new("base/kustomization.yaml", "resources: [class.yaml]\n"),
        SourceFile::new("nodes/kustomization.yaml", "resources: [../base]\n"),
    ];
    assert_eq!(role(&built, &[]), "node-blue");
}

#[test]
fn each_cluster_that_says_something_else_is_judged() {
    let cluster = |name: &str, weight: u32| {
        let text = FLUX.replace("name: nodes", &format!("name: {name}"));
        SourceFile::new(format!("{name}.yaml"), text.replace("CLUSTER_NAME: blue", &format!("WEIGHT: \"{weight}\"")))
    };
    let text = POOL.replace("spec:\n  template", "spec:\n  weight: ${WEIGHT}\n  template");
    let pool = SourceFile::new("nodes/pool.yaml", text);
    let errors = |files: &[SourceFile]| {
        let found = lint(files, &GivenVariables::default());
        let errors = found.diagnostics.into_iter().filter(|it| it.severity == Severity::Error);
        errors.map(|it| (it.span.line, it.message)).collect::<Vec<_>>()
    };
    assert!(errors(&[cluster("blue", 5), cluster("green", 50), pool.clone()]).is_empty());
    let found = errors(&[cluster("blue", 5), cluster("green", 500), cluster("red", 600), pool.clone()]);
    let [(6, message)] = &found[..] else { panic!("{found:?}") };
    assert!(message.ends_with("; so Kustomization `green` in green.yaml sets it"), "{message}");
    // A folder in it may have a Kustomization of its own.
    let own = SourceFile::new("own.yaml", FLUX.replace("./nodes", "./nodes/own"));
    let inside = SourceFile::new("nodes/own/pool.yaml", pool.content.clone());
    assert!(errors(&[cluster("blue", 5), cluster("green", 500), own, inside]).is_empty());
    // A plan is of one cluster, which is not known.
    assert!(!read(&[cluster("blue", 5), cluster("green", 500), pool], &GivenVariables::default()).has_errors());
}

#[test]
fn what_flux_is_told_later_is_not_forgotten() {
    let mut memory = Memory::default();
    let mut again = |flux: &str| {
        let text = POOL.replace("spec:\n  template", "spec:\n  weight: ${WEIGHT}\n  template");
        let files = [SourceFile::new("clusters/blue.yaml", flux), SourceFile::new("nodes/pool.yaml", text)];
        lint_again(&files, &GivenVariables::default(), LintOptions::default(), &mut memory).has_errors()
    };
    assert!(!again(FLUX));
    assert!(again(&FLUX.replace("CLUSTER_NAME: blue", "WEIGHT: \"500\"")));
    assert!(!again(&FLUX.replace("CLUSTER_NAME: blue", "WEIGHT: \"50\"")));
}

/// As kustomize 5.5 judges them: it builds nothing of those that are refused.
#[test]
fn a_patch_with_a_target_is_named_all_the_same() {
    let built = |patch: &str| {
        let indented: String = patch.lines().map(|line| format!("    {line}\n")).collect();
        let kustomization =
            format!("resources: [pool.yaml]\npatches:\n- target: {{ kind: NodePool }}\n  patch: |-\n{indented}");
        let files = [SourceFile::new("kustomization.yaml", kustomization), SourceFile::new("pool.yaml", POOL)];
        let found = read(&files, &GivenVariables::default());
        let lines = found.diagnostics.iter().filter(|it| it.code == "CL0015").map(|it| it.span.line);
        (lines.collect::<Vec<usize>>(), found.node_pools.first().and_then(|pool| pool.value.spec.weight))
    };
    let named = "kind: NodePool\nmetadata: { name: any }\n";
    assert_eq!(built(&format!("{named}spec: {{ weight: 8 }}")), (vec![], Some(8)));
    assert!(built("kind: NodePool\nmetadata: { name: 1 }\nspec: { weight: 8 }").0.is_empty());
    for unnamed in
        ["spec: { weight: 8 }", "kind: NodePool\nspec: {}", "metadata: { name: a }", "kind: A\nmetadata: { name: '' }"]
    {
        assert_eq!(built(unnamed).0, [5], "{unnamed}");
    }
    assert_eq!(built(&format!("{named}spec: {{ weight: 8 }}\n---\n{named}spec: {{ weight: 9 }}")).0, [9]);
    assert_eq!(built("- { op: replace, path: /spec/weight, value: 8 }"), (vec![], Some(8)));
}

#[test]
fn what_a_class_lacks_to_be_found_is_said() {
    let lacks = |class: &str| {
        let class_of_ours = "{ group: karpenter.k8s.aws, kind: EC2NodeClass, name: default }";
        let found = shown(&read_text(&POOL.replace(class_of_ours, class)));
        let of_field = |it: &str| Some((it.split_once("nodeClassRef` lacks ")?.1).to_owned());
        found.iter().filter_map(|it| of_field(it)).collect::<Vec<String>>()
    };
    let (group, kind) = ("`group` [add `group: karpenter.k8s.aws`]", "`kind` [add `kind: EC2NodeClass`]");
    assert_eq!(lacks("{ name: default }"), [group, kind]);
    assert_eq!(lacks("{ kind: EC2NodeClass, name: default }"), [group]);
    assert_eq!(lacks("{ group: karpenter.k8s.aws, name: default }"), [kind]);
}

/// As kustomize 5.5 judges them.
#[test]
fn generators_change_what_is_there_and_make_the_rest() {
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: vars }\ndata: { weight: \"5\", other: \"6\" }\n";
    let built = |generator: &str| {
        let kustomization = format!(
            "resources: [pool.yaml, map.yaml]\nconfigMapGenerator:\n- {{ {generator} }}\nreplacements:\n- source: {{ kind: ConfigMap, name: vars, \
             fieldPath: data.weight }}\n  targets: [{{ select: {{ kind: NodePool }}, fieldPaths: [spec.weight] }}]\n"
        );
        let pool = POOL.replace("spec:\n  template", "spec:\n  weight: 1\n  template");
        let files = [("kustomization.yaml", kustomization.as_str()), ("pool.yaml", &pool), ("map.yaml", map)];
        let found = read(&files.map(|(path, text)| SourceFile::new(path, text)), &GivenVariables::default());
        let errors = found.diagnostics.iter().filter(|it| it.severity == Severity::Error).map(|it| it.span.line);
        (errors.collect::<Vec<usize>>(), found.node_pools.first().and_then(|pool| pool.value.spec.weight))
    };
    assert_eq!(built("name: vars, behavior: merge, literals: [weight=7]"), (vec![], Some(7)));
    assert_eq!(built("name: vars, behavior: replace, literals: [weight=8, a=b=c]"), (vec![], Some(8)));
    assert_eq!(built("name: new, literals: [a=b]"), (vec![], Some(5)));
    assert_eq!(built("name: new, behavior: merge, literals: [a=b]").0, [3]);
    let aimless = |targets: &str| {
        let text = format!("resources: [a.yaml]\nreplacements:\n- source: {{ kind: NodePool }}\n{targets}");
        let files = [SourceFile::new("kustomization.yaml", text), SourceFile::new("a.yaml", POOL)];
        let found = read(&files, &GivenVariables::default());
        found.diagnostics.iter().filter(|it| it.code == "CL0015").map(|it| it.span.line).collect::<Vec<_>>()
    };
    assert_eq!(aimless(""), [3]);
    assert_eq!(aimless("  targets: []\n"), [3]);
    assert_eq!(aimless("  targets:\n  - fieldPaths: [metadata.name]\n"), [5]);
    assert!(aimless("  targets: [{ select: { kind: NodePool } }]\n").is_empty());
    assert_eq!(built("name: new, literals: [a]").0, [3]);
    assert_eq!(built("name: vars, literals: [a=b]").0[0], 3);
}

#[test]
fn a_broken_document_does_not_take_the_others_along() {
    let definitions = read_text(&format!("a: [1, 2\n---\n{CLASS}---\nkind: {{\n---\n{POOL}"));
    assert_eq!(definitions.node_pools.len(), 1, "{:?}", shown(&definitions));
    assert_eq!(definitions.node_classes.len(), 1);
    assert!(!definitions.revision_usable());
    assert_eq!(definitions.count(Severity::Error), 2, "{:?}", shown(&definitions));
}

#[test]
fn every_cel_rule_of_a_schema_is_in_the_registry() {
    fn search(schema: &serde_json::Value, found: &mut Vec<(String, String)>) {
        if let Some(rules) = schema.get("x-kubernetes-validations").and_then(serde_json::Value::as_array) {
            let text = |rule: &serde_json::Value, name: &str| rule[name].as_str().unwrap().to_owned();
            found.extend(rules.iter().map(|rule| (text(rule, "rule"), text(rule, "message"))));
        }
        match schema {
            serde_json::Value::Object(map) => map.values().for_each(|inner| search(inner, found)),
            serde_json::Value::Array(items) => items.iter().for_each(|inner| search(inner, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    kinds::Kind::ALL.into_iter().for_each(|kind| search(&schema::published(kind), &mut found));
    assert!(found.len() > 50, "{}", found.len());
    for (rule, message) in found {
        assert!(rules::of_cel(&rule, &message).is_some(), "{rule}: {message}");
    }
}

#[test]
fn codes_are_unique_and_in_order() {
    let rules = rules::all();
    for pair in rules.windows(2) {
        assert!(pair[0].code < pair[1].code, "{:?} {:?}", pair[0], pair[1]);
    }
    for rule in rules {
        assert!(rule.summary.ends_with('.') && !rule.name.contains(' '), "{rule:?}");
    }
}

fn read_bytes(content: &[u8]) -> Definitions {
    read(&[SourceFile::new("a.yaml", content)], &GivenVariables::default())
}

fn rules_of(definitions: &Definitions) -> Vec<&str> {
    definitions.diagnostics.iter().map(|diagnostic| diagnostic.rule.as_str()).collect()
}

#[test]
fn what_is_no_object_in_a_list_says_so() {
    let text =
        "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: karpenter.sh/x, kind: NodePool}\n- nothing\n-\n- {a: b}\n";
    let definitions = read_bytes(text.as_bytes());
    let is_it = |it: &&Diagnostic| it.rule == "incomplete-object";
    let lines: Vec<usize> = definitions.diagnostics.iter().filter(is_it).map(|it| it.span.line).collect();
    assert_eq!(lines, [5, 6, 7], "{:?}", shown(&definitions));
    // Lists of others hold what they like.
    let definitions = read_bytes(b"apiVersion: v1\nkind: List\nitems: [a, {b: c}]\n");
    assert!(!rules_of(&definitions).contains(&"incomplete-object"), "{:?}", shown(&definitions));
}

#[test]
fn a_pool_of_each_way_in_one_folder_says_which_is_which() {
    let of_auto_mode = POOL.replace("karpenter.k8s.aws", "eks.amazonaws.com").replace("EC2NodeClass", "NodeClass");
    let files = [SourceFile::new("a.yaml", of_auto_mode.as_str()), SourceFile::new("b.yaml", POOL)];
    let definitions = lint(&files, &GivenVariables::default());
    let twice = definitions.diagnostics.iter().find(|it| it.rule == "duplicate-definition");
    let hint = twice.and_then(|it| it.hint.as_deref()).unwrap_or_default();
    assert!(hint.contains("Auto Mode"), "{:?}", shown(&definitions));
}

#[test]
fn what_is_no_text_says_so() {
    let utf16: Vec<u8> =
        [0xff, 0xfe].into_iter().chain("kind: NodePool".encode_utf16().flat_map(u16::to_le_bytes)).collect();
    for content in [utf16.as_slice(), b"apiVersion: karpenter.sh/x \xff\xfe"] {
        let definitions = read_bytes(content);
        assert_eq!(rules_of(&definitions), ["not-utf8"], "{:?}", shown(&definitions));
    }
    // Without a mark at the beginning.
    let pool = "kind: NodePool\nmetadata: { name: é }\n";
    let wide: Vec<u8> = pool.chars().flat_map(|letter| u32::from(letter).to_le_bytes()).collect();
    let little: Vec<u8> = pool.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = pool.encode_utf16().flat_map(u16::to_be_bytes).collect();
    for (content, encoding) in [(little, "UTF-16"), (big, "UTF-16"), (wide, "UTF-32")] {
        let definitions = read_bytes(&content);
        assert_eq!(rules_of(&definitions), ["not-utf8"], "{:?}", shown(&definitions));
        assert!(definitions.diagnostics[0].message.contains(encoding), "{:?}", shown(&definitions));
    }
    // Nothing in this text looks like a definition.
    for content in [b"a: \xff\xfe".as_slice(), b"\x7fELF\x02\x01\xf5"] {
        let definitions = read_bytes(content);
        assert_eq!(rules_of(&definitions), ["not-an-object"], "{:?}", shown(&definitions));
        assert_eq!(definitions.not_read.len(), 1);
    }
    let definitions = read_bytes(b"kind: Pod\nb: \xc3\xa9\xff");
    let span = definitions.diagnostics[0].span;
    assert_eq!((span.line, span.column), (2, 5));
    assert!(read_bytes(&vec![b'#'; limits::FILE_BYTES + 1]).diagnostics[0].rule == "file-too-large");
    assert_eq!(read_bytes(b"a\0b: 1").documents_read, 1);
}

/// What is too large is not read; whether it counts, paths of the settings say, and kustomizations.
#[test]
fn a_file_that_is_too_large_counts_where_it_is_asked_for() {
    let large = SourceFile { standing: Standing::TooLarge, ..SourceFile::new("vendor/openapi.yaml", "") };
    let settings = "apiVersion: cutlist.dev/v1alpha1\nkind: Settings\nspec: { paths: [pools] }\n";
    let pool = SourceFile::new("pools/a.yaml", POOL);
    let definitions = read(&[large.clone(), pool.clone()], &GivenVariables::default());
    assert_eq!(rules_of(&definitions)[1..], ["file-too-large"], "{:?}", shown(&definitions));
    assert_eq!(definitions.not_read.len(), 1);
    let files = [large, pool, SourceFile::new("cutlist.yaml", settings)];
    let definitions = read(&files, &GivenVariables::default());
    assert!(!definitions.has_errors() && definitions.not_read.is_empty(), "{:?}", shown(&definitions));
}

/// Small files together are held in memory as large ones are.
#[test]
fn documents_of_all_files_are_counted() {
    let files = |documents: usize| -> Vec<SourceFile> {
        let of_file = limits::FILE_DOCUMENTS / 2;
        let full = (0..documents / of_file).map(|_| of_file).chain([documents % of_file]);
        let named = full
            .enumerate()
            .map(|(number, count)| SourceFile::new(format!("{number}.yaml"), vec!["a: b\n"; count].join("---\n")));
        named.chain([SourceFile::new("pool.yaml", POOL)]).collect()
    };
    let most = read(&files(limits::REVISION_DOCUMENTS - 1), &GivenVariables::default());
    assert!(!most.has_errors() && most.node_pools.len() == 1, "{:?}", shown(&most));
    let more = read(&files(limits::REVISION_DOCUMENTS), &GivenVariables::default());
    assert_eq!(rules_of(&more), ["limit"], "{:?}", shown(&more));
    assert!(more.has_errors() && more.node_pools.is_empty());
}

/// Whoever reads a file of another tool finds nothing in it; one that may be ours can not be left out in silence.
#[test]
fn what_is_wrong_with_files_of_other_tools_is_theirs() {
    for text in [
        "Resources: { Role: !Sub x }",
        "image: x\nimage: y",
        "service:\n%{ if ipv6 ~}\n",
        "kind: DaemonSet\nreplicas: 2",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a, name: b }",
        "x: &x [*x]",
    ] {
        let definitions = read_text(text);
        assert!(!definitions.has_errors(), "{text}: {:?}", shown(&definitions));
    }
    for text in [
        "kind: NodePool\nspec: { weight: !Sub x }",
        "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: { name: a, name: b }",
        "kind: NodePool\nspec: [",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: a, name: b }",
        "kind: ConfigMap\nkind: NodePool\nspec: {}",
    ] {
        assert!(read_text(text).has_errors(), "{text}");
    }
    // Named by a kustomization it is ours, whatever it is.
    let files =
        [("kustomization.yaml", "resources: [a.yaml]"), ("a.yaml", "apiVersion: v1\nkind: ConfigMap\na: 1\na: 2\n")];
    let files = files.map(|(path, text)| SourceFile::new(path, text));
    assert!(read(&files, &GivenVariables::default()).has_errors());
}

#[test]
fn empty_files_are_nothing() {
    for content in ["", "\n", "# nothing", "---", "---\n---\n", "\u{feff}", "...", "null", "~"] {
        let definitions = read_text(content);
        assert_eq!(definitions.count(Severity::Error), 0, "{content:?}: {:?}", shown(&definitions));
    }
}

#[test]
fn depth_aliases_and_documents_have_limits() {
    let deep = format!("a: {}{}", "[".repeat(5000), "]".repeat(5000));
    let block: String = (0..300).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(",");
        bomb += &format!("a{level}: &a{level} [{aliases}]\n");
    }
    let aliases = format!("a: &a 1\nb: [{}]", vec!["*a"; limits::DOCUMENT_ALIASES + 1].join(", "));
    let itself = "kind: NodePool\na: &a [*a]";
    for (name, content) in [("deep", &deep), ("block", &block), ("bomb", &bomb), ("aliases", &aliases)] {
        let text = format!("kind: NodePool\n{content}\n---\n{CLASS}");
        let definitions = read_text(&text);
        assert!(rules_of(&definitions).contains(&"limit"), "{name}: {:?}", rules_of(&definitions));
        assert_eq!(definitions.node_classes.len(), 1, "{name}: the document behind it is read");
    }
    assert!(read_text(itself).has_errors());
    let many = "a: 1\n---\n".repeat(limits::FILE_DOCUMENTS + 5);
    assert!(rules_of(&read_text(&many)).contains(&"limit"));
}

#[test]
fn findings_are_counted_beyond_a_limit() {
    let fields: String = (0..limits::FILE_FINDINGS + 50).map(|number| format!("  unknown{number}: 1\n")).collect();
    let definitions = read_text(&POOL.replace("  template:", &format!("{fields}  template:")));
    let last = definitions.diagnostics.iter().find(|diagnostic| diagnostic.rule == "too-many-findings").unwrap();
    assert!(last.message.starts_with("50 more"), "{}", last.message);
    assert_eq!(definitions.count(Severity::Error), limits::FILE_FINDINGS);
    assert!(rules_of(&definitions).contains(&"class-missing"), "what the class that is missing says is still there");
}

/// Line, column and text of the first finding.
fn place(text: &str) -> (usize, usize, String) {
    let definitions = read_text(text);
    let diagnostic = definitions.diagnostics.first().unwrap();
    let span = diagnostic.span;
    (span.line, span.column, text.get(span.start_byte..span.end_byte).unwrap().to_owned())
}

#[test]
fn places_hold_with_line_ends_byte_order_marks_and_wide_characters() {
    let wrong = CLASS.replace("role:", "rolle:");
    assert_eq!(place(&wrong), (6, 3, "rolle".to_owned()));
    assert_eq!(place(&wrong.replace('\n', "\r\n")), (6, 3, "rolle".to_owned()));
    assert_eq!(place(&format!("\u{feff}{wrong}")), (6, 3, "rolle".to_owned()));
    let wide = wrong.replace("  rolle:", "  instanceStorePolicy: RAID0 # äöü 한국어\n  rolle:");
    assert_eq!(place(&wide), (7, 3, "rolle".to_owned()));
    let flow =
        format!("# 한국어\n{POOL}").replace("{ group: karpenter.k8s.aws", "{ \"한\": 1, groub: karpenter.k8s.aws");
    let definitions = read_text(&flow);
    let found = definitions.diagnostics.iter().find(|diagnostic| diagnostic.message.contains("groub")).unwrap();
    assert_eq!((found.span.line, found.span.column), (9, 31), "columns count characters, not bytes");
}

#[test]
fn what_an_alias_stands_for_is_shown_at_its_anchor() {
    let text = POOL.replace(
        "      requirements:\n",
        "      taints: &t [{ key: a, effect: Nosuch }]\n      startupTaints: *t\n      requirements:\n",
    );
    let definitions = read_text(&format!("{text}---\n{CLASS}"));
    let places: Vec<_> = definitions
        .diagnostics
        .iter()
        .filter(|d| d.rule == "not-one-of")
        .map(|d| (d.span.line, d.span.column))
        .collect();
    assert_eq!(places, [(9, 37)], "one mistake, one finding");
}

/// A change of a text that people and programs make by accident.
fn mutate(text: &str, changes: &[(usize, u8)]) -> String {
    const PIECES: [&str; 24] = [
        "", " ", "\n", "\t", ":", "- ", "{", "}", "[", "]", "\"", "'", "&a", "*a", "!t ", "---\n", "...", "${", "|\n",
        "<<: ", "é", "\r\n", "#", "? ",
    ];
    let mut characters: Vec<String> = text.chars().map(String::from).collect();
    for (place, piece) in changes {
        let place = place % characters.len();
        let piece = PIECES[*piece as usize % PIECES.len()];
        if *piece == *"" {
            characters[place].clear();
        } else {
            characters[place].push_str(piece);
        }
    }
    characters.concat()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_change_of_one_file_harms_another(changes in prop::collection::vec((any::<usize>(), any::<u8>()), 1..6)) {
        let changed = mutate(&format!("{POOL}---\n{CLASS}"), &changes);
        let intact = CLASS.replace("name: default", "name: intact");
        let files = [("a.yaml", changed.as_str()), ("b.yaml", &intact)];
        let files = files.map(|(path, text)| SourceFile::new(path, text));
        let definitions = read(&files, &GivenVariables::default());
        prop_assert!(definitions.node_classes.iter().any(|class| class.file == "b.yaml"));
        for diagnostic in &definitions.diagnostics {
            let text = if diagnostic.file == "a.yaml" { changed.as_str() } else { &intact };
            let span = diagnostic.span;
            prop_assert!(span.line >= 1 && span.column >= 1, "{diagnostic:?}");
            prop_assert!(text.get(span.start_byte..span.end_byte).is_some(), "{diagnostic:?}");
        }
        prop_assert_eq!(shown(&read(&files, &GivenVariables::default())), shown(&definitions));
    }

    /// Whatever stands before a separator of its own line, the document behind it is read. Block scalars and quoted
    /// texts may swallow a separator, so the change keeps to characters that can not open one.
    #[test]
    fn no_change_of_one_document_loses_the_next(changes in prop::collection::vec((any::<usize>(), 0_u8..10), 1..6)) {
        let changed = mutate(POOL, &changes);
        let definitions = read_text(&format!("{changed}\n---\n{}", CLASS.replace("name: default", "name: behind")));
        let names: Vec<_> = definitions.node_classes.iter().filter_map(|class| class.value.metadata.name.clone()).collect();
        prop_assert_eq!(names, ["behind"], "{}\n{:?}", changed, shown(&definitions));
    }

    #[test]
    fn any_bytes_are_survived(content in prop::collection::vec(any::<u8>(), 0..300)) {
        read_bytes(&content);
    }

    #[test]
    fn any_text_is_survived(text in "(\\PC|[\\n\\t:{}\\[\\]&*!|>'\"#%@`,?-]){0,200}") {
        read_text(&format!("{POOL}{text}"));
        read_text(&text);
    }
}

/// Whoever sees a hash of a short secret can try what it may be.
#[test]
fn the_hash_of_a_class_covers_the_names_of_what_is_hidden_and_no_value() {
    let read_class = |user_data: &str, role: &str, token: &str| {
        let text = format!(
            "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {{ name: a }}\nspec:\n  role: ${{ROLE}}\n  \
             amiSelectorTerms: [{{ alias: al2023@latest }}]\n  subnetSelectorTerms: [{{ tags: {{ a: b }} }}]\n  \
             securityGroupSelectorTerms: [{{ tags: {{ a: b }} }}]\n  userData: {user_data}\n"
        );
        let given = GivenVariables {
            typed: [("ROLE".to_owned(), role.to_owned())].into(),
            from_environment: ["TOKEN", "OTHER", "ROLE"].map(|name| (name.to_owned(), token.to_owned())).into(),
            ..GivenVariables::default()
        };
        let definitions = read(&[SourceFile::new("a.yaml", text)], &given);
        assert!(!definitions.has_errors(), "{:?}", definitions.diagnostics);
        definitions.node_classes.into_iter().next().unwrap()
    };
    let hash = |user_data: &str, role: &str, token: &str| read_class(user_data, role, token).hash_as_written;
    let class = read_class("join ${TOKEN}", "r", "123456");
    assert_eq!(class.value.spec.user_data.as_deref(), Some("join 123456"));
    assert_eq!(class.hidden_variables, ["TOKEN".to_owned()].into());
    assert!(class.hash_as_written.is_some());
    assert_eq!(hash("join ${TOKEN}", "r", "654321"), class.hash_as_written, "of the name, not of the value");
    for (user_data, role) in [
        ("join ${OTHER}", "r"),
        ("join $${TOKEN}", "r"),
        ("join 123456", "r"),
        ("join  ${TOKEN}", "r"),
        // What may be shown counts with its value.
        ("join ${TOKEN}", "s"),
    ] {
        assert_ne!(hash(user_data, role, "123456"), class.hash_as_written, "{user_data} {role}");
    }
    let without = read_class("join me", "r", "123456");
    assert_eq!((without.hash_as_written, without.hidden_variables.len()), (None, 0), "its value is hashed");
}

#[test]
fn settings_of_a_folder_with_definitions_are_held_against_their_schema() {
    let settings =
        "apiVersion: cutlist.dev/v1alpha1\nkind: Settings\nmetadata: { name: cutlist }\nspec: { packing: dearest }\n";
    let base = ("base/kustomization.yaml", "resources: [pool.yaml, class.yaml]\n");
    let overlay = ("blue/kustomization.yaml", "resources: [../base]\n");
    let beside = [base, overlay, ("base/pool.yaml", POOL), ("base/class.yaml", CLASS)];
    for (path, expected) in [
        ("cutlist.yaml", &["schema"][..]),
        ("blue/cutlist.yaml", &["schema"]),
        ("base/cutlist.yaml", &["schema"]),
        // There is nothing that could be planned by itself.
        ("settings/cutlist.yaml", &["misplaced-file"]),
        ("blue/settings.yaml", &["misplaced-file"]),
    ] {
        let files: Vec<SourceFile> =
            beside.iter().chain(&[(path, settings)]).map(|(path, text)| SourceFile::new(*path, *text)).collect();
        let found = lint(&files, &GivenVariables::default());
        let of_file: Vec<&str> =
            found.diagnostics.iter().filter(|it| it.file == path).map(|it| it.rule.as_str()).collect();
        assert_eq!(of_file, expected, "{path}: {:?}", shown(&found));
    }
}
