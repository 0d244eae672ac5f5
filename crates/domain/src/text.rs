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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_is_cut_at_whole_characters() {
        assert_eq!(safe_text("äöü".as_bytes(), 3), "äöü");
        assert_eq!(safe_text("äöü".as_bytes(), 2), "äö");
        assert_eq!(safe_text("äöü".as_bytes(), 0), "");
        let long = "x".repeat(ERROR_TEXT_CHARS_MAX + 1);
        assert_eq!(safe_text(long.as_bytes(), ERROR_TEXT_CHARS_MAX).len(), 200);
    }

    #[test]
    fn line_breaks_become_spaces_and_other_controls_are_marked() {
        assert_eq!(safe_text(b"a\r\nb\tc", 10), "a  b c");
        assert_eq!(
            safe_text(b"a\0b\x1b[31m\x7f", 10),
            "a\u{fffd}b\u{fffd}[31m\u{fffd}"
        );
        assert_eq!(safe_text("a\u{85}b".as_bytes(), 10), "a\u{fffd}b");
    }

    #[test]
    fn invalid_utf_8_is_marked_where_it_stands() {
        assert_eq!(safe_text(b"a\xffb\xe2\x82", 10), "a\u{fffd}b\u{fffd}");
    }

    proptest! {
        #[test]
        fn any_bytes_become_text_the_database_takes(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            max_chars in 0..250_usize,
        ) {
            let text = safe_text(&bytes, max_chars);
            prop_assert!(text.chars().count() <= max_chars);
            prop_assert!(!text.contains(char::is_control));
            let lossy = String::from_utf8_lossy(&bytes);
            prop_assert_eq!(text.chars().count(), lossy.chars().count().min(max_chars));
        }
    }
}
