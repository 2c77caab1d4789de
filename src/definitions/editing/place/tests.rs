//! Texts as they are while somebody types: what is found at a place of them.

use super::*;

/// The place of `|` in the text: role, path, word, what is beside it.
fn said(text: &str) -> String {
    let offset = text.find('|').unwrap();
    let text = text.replacen('|', "", 1);
    let Some(place) = EditPlace::at(&text, offset, Extent::ToPlace) else { return "nothing".to_owned() };
    let keys: Vec<&str> = place.siblings().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
    format!("{:?} {} `{}` beside [{}]", place.role, place.path.join("."), place.word, keys.join(" "))
}

#[test]
fn finds_keys_and_values_while_they_are_typed() {
    for (text, expected) in [
        ("|", "Value  `` beside []"),
        ("kin|", "Value  `kin` beside []"),
        ("kind: NodePool\nsp|", "Key  `sp` beside [kind]"),
        ("kind: NodePool\nspec:\n  |", "Value spec `` beside []"),
        ("kind: NodePool\nspec:\n  |\n  weight: 1\n", "Value spec `` beside [weight]"),
        ("spec:\n  weight: 1\n  tem|\n  limits:\n    cpu: 1\n", "Key spec `tem` beside [limits weight]"),
        ("spec:\n  weight: 1\n  |", "Key spec `` beside [weight]"),
        ("spec:\n  tem|plate:\n    a: 1\n", "Value spec `tem` beside []"),
        ("a:\n  - key: x\n    oper|", "Key a.0 `oper` beside [key]"),
        ("a:\n  - |\n    operator: In\n", "Value a.0 `` beside [operator]"),
        ("a:\n- key: x\n  operator: I|\n", "Value a.0.operator `I` beside []"),
        ("a:\n- b: 1\n- key: x\n  values: [y, m|\n", "Value a.1.values.1 `m` beside []"),
        ("a:\n- { key: x, op| }\n", "Key a.0 `op` beside [key]"),
        ("a:\n- { key: x, operator: | }\n", "Value a.0.operator `` beside []"),
        ("a:\n- key: x\n  values:\n  - m5.l|\n", "Value a.0.values.0 `m5.l` beside []"),
        ("a:\n- key: x\n  values:\n  - \"m5.l|\n", "Value a.0.values.0 `m5.l` beside []"),
        ("a:\n  \"ke|\n", "Value a `ke` beside []"),
        ("disruption:\n  budgets:\n  - nodes: \"1\"\n  conso|", "Key disruption `conso` beside [budgets]"),
        ("a: 1\n---\nb: 2\nk|\n---\nc: 3\n", "Key  `k` beside [b]"),
        ("{\"a\": {\"b\": 1, \"c|", "Key a `c` beside [b]"),
    ] {
        assert_eq!(said(text), expected, "{text}");
    }
}

#[test]
fn comments_and_blocks_of_text_are_no_places() {
    for text in ["a: 1 # x|\n", "# |", "userData: >\n  echo |\n", "a: 1\n# b|\nc: 2\n"] {
        assert_eq!(said(text), "nothing", "{text}");
    }
}

#[test]
fn what_is_broken_above_hides_only_itself() {
    let text = "spec:\n  bad: [\n  template:\n    spec:\n      bad: }\n      requirements:\n      - key: x\n        operator: I|\n";
    assert_eq!(said(text), "Value spec.template.spec.requirements.0.operator `I` beside []");
}

#[test]
fn odd_texts_have_an_end() {
    for text in [
        "\t|\t",
        "- - - |",
        "? |",
        "[[[[|",
        "&a *a: |",
        "\u{feff}k|",
        "é: |é",
        "a: 'b|",
        "%YAML\n|",
        "---\n|",
        "a:\r\n  b|\r\n",
    ] {
        said(text);
    }
    assert_eq!(said("a:\r\n  b: 1\r\n  c|\r\n  d: 2\r\n"), "Key a `c` beside [b d]");
    let deep = format!("{}|", "[".repeat(100_000));
    assert_eq!(said(&deep), "nothing");
}

#[test]
fn every_place_of_a_text_can_be_asked_for() {
    let text = "\u{feff}# é\r\nkind: NodePool\r\nspec:\n  a: {b: [c, \"d𝄞\"], 'e': |\n    f\n  - g\n---\n\t? h\n: i\n&j *j: !k l\n";
    for offset in 0..=text.len() + 1 {
        for extent in [Extent::ToPlace, Extent::WholeWord] {
            for cut in [text, text.get(..offset).unwrap_or(text)] {
                if let Some(place) = EditPlace::at(cut, offset, extent) {
                    assert!(cut.get(place.start..place.end).is_some(), "{offset} {place:?}");
                }
            }
        }
    }
}

#[test]
fn the_word_goes_on_behind_the_place() {
    let text = "spec:\n  weight: 10\n";
    let place = EditPlace::at(text, text.find("ight").unwrap(), Extent::WholeWord).unwrap();
    let written = text.get(place.start..place.end).unwrap();
    assert_eq!((place.word.as_str(), place.has_colon, written), ("weight", true, "weight"));
    let of_value = EditPlace::at(text, text.find('0').unwrap(), Extent::WholeWord).unwrap();
    assert_eq!(
        (of_value.role, of_value.path.as_slice()),
        (Role::Value, ["spec".to_owned(), "weight".to_owned()].as_slice())
    );
}
