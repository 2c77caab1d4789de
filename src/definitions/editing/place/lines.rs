//! What can be told from lines and their indentation alone.

/// Where the document begins that the place is in: behind the nearest `---` above.
pub fn start_of_document(text: &str, offset: usize) -> usize {
    let before = text.get(..offset).unwrap_or_default();
    let mut start = 0;
    let mut at = 0;
    for line in before.split_inclusive('\n') {
        at += line.len();
        // The line that is typed may be one to be.
        if is_divider(line) && line.ends_with('\n') {
            start = at;
        }
    }
    if start == 0 && text.starts_with('\u{feff}') && offset >= '\u{feff}'.len_utf8() {
        return '\u{feff}'.len_utf8();
    }
    start
}

/// Where it ends: before the next one.
pub fn end_of_document(text: &str, offset: usize) -> usize {
    let mut at = offset;
    let behind = text.get(offset..).unwrap_or_default();
    for (index, line) in behind.split_inclusive('\n').enumerate() {
        if index > 0 && is_divider(line) {
            return at;
        }
        at += line.len();
    }
    text.len()
}

fn is_divider(line: &str) -> bool {
    line.strip_prefix("---").is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
}

fn is_of_word(character: char) -> bool {
    !character.is_whitespace() && !matches!(character, ',' | '[' | ']' | '{' | '}' | '"' | '\'')
}

/// The end of `line` that belongs to a word.
pub fn word_before(line: &str) -> &str {
    let start = line.char_indices().rev().take_while(|(_, it)| is_of_word(*it)).last().map_or(line.len(), |(at, _)| at);
    line.get(start..).unwrap_or_default()
}

/// The start of `rest` that belongs to a word; a colon before a blank does not.
pub fn word_behind(rest: &str) -> &str {
    let mut characters = rest.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let ends = character == ':' && characters.peek().is_none_or(|(_, next)| !is_of_word(*next));
        if ends || !is_of_word(character) {
            return rest.get(..at).unwrap_or_default();
        }
    }
    rest
}

/// Columns before the content of a line; where it begins an entry of a list, before its dash.
fn indentation(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn is_entry(line: &str) -> bool {
    line.trim_start_matches(' ').strip_prefix('-').is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\r']))
}

fn has_content(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with('#')
}

/// The last line of `prefix` under the lines that it is indented under, which are read even where others above are broken.
pub fn ancestors(prefix: &str) -> String {
    let mut lines = prefix.split('\n').rev();
    let last = lines.next().unwrap_or_default();
    let mut kept = vec![last];
    let mut column = indentation(last);
    let mut was_entry = is_entry(last);
    for line in lines.filter(|line| has_content(line)) {
        let own = indentation(line);
        // A list may be indented like its key.
        let is_key_of_list = was_entry && own == column && !is_entry(line);
        if own < column || is_key_of_list {
            kept.push(line);
            column = own;
            was_entry = is_entry(line);
        }
        if column == 0 && !was_entry {
            break;
        }
    }
    kept.reverse();
    kept.join("\n")
}

/// Members of the mapping whose keys begin at `column`, in the lines behind the place, with values where they are on the line.
pub fn members_below(rest: &str, column: usize) -> Vec<(String, String)> {
    let mut members = Vec::new();
    for line in rest.split('\n').skip(1).filter(|line| has_content(line)) {
        let own = indentation(line);
        if own < column {
            break;
        }
        if own > column || is_entry(line) {
            continue;
        }
        if let Some((key, value)) = line.trim().split_once(':').filter(|(_, it)| it.is_empty() || it.starts_with(' ')) {
            let value = value.split(" #").next().unwrap_or_default();
            members.push((bare(key).to_owned(), bare(value).to_owned()));
        }
    }
    members
}

fn bare(text: &str) -> &str {
    text.trim().trim_matches(['"', '\''])
}
