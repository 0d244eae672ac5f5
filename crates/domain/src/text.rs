//! Foreign bytes made safe to store and to show. It does not hide secrets: what may not be shown
//! must not be given to it.

/// How much of an error's text is kept with an attempt, in characters.
pub const ERROR_TEXT_CHARS_MAX: usize = 200;

/// How much of a response body is read and kept, in bytes.
pub const RESPONSE_CAPTURE_BYTES_MAX: usize = 16 * 1024;

/// At most `max_chars` characters of `bytes`, fit for a text column of the database and for one line:
/// line breaks and tabs become spaces; other control characters (NUL too) and invalid UTF-8 become
/// U+FFFD.
pub fn safe_text(bytes: &[u8], max_chars: usize) -> String {
    bytes
        .utf8_chunks()
        .flat_map(|chunk| {
            let broken = !chunk.invalid().is_empty();
            let replacement = broken.then_some(char::REPLACEMENT_CHARACTER);
            chunk.valid().chars().map(safe_char).chain(replacement)
        })
        .take(max_chars)
        .collect()
}

fn safe_char(char: char) -> char {
    match char {
        '\r' | '\n' | '\t' => ' ',
        control if control.is_control() => char::REPLACEMENT_CHARACTER,
        visible => visible,
    }
}
