//! The nearest valid spelling.

/// `; did you mean "x"?` when a known word is near, else `; there is x, y, z` when few are known.
pub(crate) fn suggest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.collect();
    let scored = known.iter().map(|other| (strsim::damerau_levenshtein(word, other), *other));
    match scored.min() {
        Some((_, nearest)) if is_near(word, nearest) => format!("; did you mean {nearest:?}?"),
        Some(_) if known.len() <= LISTED_MAX => format!("; there is {}", list(&known)),
        _ => String::new(),
    }
}

/// Whether one may be a slip of the other.
pub(crate) fn is_near(word: &str, other: &str) -> bool {
    strsim::damerau_levenshtein(word, other) <= 1 + word.chars().count() / 3
}

/// `"a", "b" or "c"`.
pub(crate) fn list(words: &[&str]) -> String {
    match words {
        [] => "nothing".into(),
        [only] => format!("{only:?}"),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(|word| format!("{word:?}")).collect();
            format!("{} or {last:?}", first.join(", "))
        }
    }
}

const LISTED_MAX: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_gets_the_word_that_was_meant_and_anything_else_the_choice() {
        let known = ["rate", "delay", "loss"];
        assert_eq!(suggest("dealy", known.into_iter()), "; did you mean \"delay\"?");
        assert_eq!(
            suggest("temperature", known.into_iter()),
            "; there is \"rate\", \"delay\" or \"loss\""
        );
        assert_eq!(suggest("x", [].into_iter()), "");
    }
}
