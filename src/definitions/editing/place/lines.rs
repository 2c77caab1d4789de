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
        members.extend(member(line));
    }
    members
}

/// Members of the root of a document, as far as their keys and values are on one line.
pub fn members_of_root(document: &str) -> Vec<(String, String)> {
    let at_start = |line: &&str| has_content(line) && indentation(line) == 0 && !is_entry(line);
    document.split('\n').filter(at_start).filter_map(member).collect()
}

fn member(line: &str) -> Option<(String, String)> {
    let (key, value) = line.trim().split_once(':').filter(|(_, it)| it.is_empty() || it.starts_with(' '))?;
    let value = value.split(" #").next().unwrap_or_default();
    Some((bare(key).to_owned(), bare(value).to_owned()))
}

/// What closes the brackets that are open at the end of `prefix`. Those of lines that are indented like a later one were forgotten.
pub fn closers(prefix: &str) -> String {
    let mut open: Vec<char> = Vec::new();
    // Of the line that the outermost bracket is on.
    let mut column = 0;
    let mut quote = None;
    for line in prefix.split('\n') {
        if !open.is_empty() && has_content(line) && indentation(line) <= column {
            open.clear();
            quote = None;
        }
        let mut before = ':';
        for (at, character) in line.char_indices() {
            let starts_value = matches!(before, ':' | '-' | ',' | '[' | '{');
            match character {
                _ if quote == Some(character) => quote = None,
                _ if quote.is_some() => {}
                '#' if line.get(..at).is_some_and(|it| it.is_empty() || it.ends_with([' ', '\t'])) => break,
                '"' | '\'' if starts_value => quote = Some(character),
                '[' | '{' if starts_value => {
                    if open.is_empty() {
                        column = indentation(line);
                    }
                    open.push(if character == '[' { ']' } else { '}' });
                }
                ']' | '}' => {
                    open.pop();
                }
                _ => {}
            }
            if !character.is_whitespace() {
                before = character;
            }
        }
        if open.is_empty() {
            quote = None;
        }
    }
    open.iter().rev().collect()
}

fn bare(text: &str) -> &str {
    text.trim().trim_matches(['"', '\''])
}
