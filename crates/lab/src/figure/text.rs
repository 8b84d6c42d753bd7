//! Words and numbers in drawings.

/// Escapes what XML and HTML would take for markup, and drops what XML 1.0 forbids altogether.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\t' | '\n' | '\r' => escaped.push(' '),
            _ if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => {}
            _ => escaped.push(letter),
        }
    }
    escaped
}

/// About how wide a text is, in units of its font size. Fonts differ, so this leans to the wide
/// side: what is laid out with it does not overlap.
pub(super) fn width(text: &str) -> f64 {
    text.chars()
        .map(|letter| match letter {
            'i' | 'l' | 'j' | 't' | 'f' | 'r' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' => 0.36,
            'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.92,
            '=' | '+' | '<' | '>' | '~' | '#' => 0.84,
            'A'..='Z' => 0.70,
            ' ' | '(' | ')' | '/' | '-' => 0.38,
            _ if letter.is_ascii() => 0.63,
            '\u{2009}' => 0.2,
            '\u{2070}'..='\u{209f}' | '¹' | '²' | '³' => 0.42,
            '\u{2e80}'.. => 1.0,
            _ => 0.64,
        })
        .sum()
}

/// `text` cut to `limit` font sizes, with an ellipsis where something was cut.
pub(super) fn cut(text: &str, limit: f64) -> String {
    if width(text) <= limit {
        return text.to_owned();
    }
    let mut kept = String::new();
    for letter in text.chars() {
        kept.push(letter);
        if width(&kept) + 0.9 > limit {
            kept.pop();
            break;
        }
    }
    format!("{}…", kept.trim_end())
}

/// A coordinate: two decimals, no trailing zeros, no negative zero.
pub(super) fn coordinate(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// A number with `decimals` behind the point, thousands apart, a true minus sign.
pub(super) fn decimal(value: f64, decimals: usize) -> String {
    let plain = format!("{:.decimals$}", value.abs());
    let (whole, part) = plain.split_once('.').unwrap_or((&plain, ""));
    let mut text = String::new();
    if value < 0.0 && plain.chars().any(|digit| ('1'..='9').contains(&digit)) {
        text.push('\u{2212}');
    }
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && whole.len() > 4 && (whole.len() - index) % 3 == 0 {
            text.push('\u{2009}');
        }
        text.push(digit);
    }
    if !part.is_empty() {
        text.push('.');
        text.push_str(part);
    }
    text
}

/// A number as a reader wants it in a label: three significant digits, no trailing zeros.
pub(crate) fn short(value: f64) -> String {
    if !value.is_finite() {
        return if value.is_nan() {
            "–"
        } else if value > 0.0 {
            "∞"
        } else {
            "\u{2212}∞"
        }
        .into();
    }
    let size = value.abs();
    if size == 0.0 {
        return "0".into();
    }
    if !(1e-4..1e7).contains(&size) {
        let text = format!("{value:.2e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let digits = digits.trim_end_matches('0').trim_end_matches('.').replace('-', "\u{2212}");
        let power = superscript(exponent.parse().unwrap_or(0));
        return if digits == "1" { power } else { format!("{digits}·{power}") };
    }
    let digits = size.log10().floor() as i32;
    let decimals = usize::try_from(2 - digits).unwrap_or(0);
    let text = decimal(value, decimals);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Ten to a power.
pub(super) fn superscript(exponent: i32) -> String {
    let digits = exponent.to_string();
    let raised = digits.chars().map(|digit| match digit {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        other => char::from_u32(0x2070 + other as u32 - '0' as u32).unwrap_or(other),
    });
    std::iter::once("10".to_owned()).chain(raised.map(String::from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_escaped_and_control_characters_are_dropped() {
        assert_eq!(escape("a<b> & \"c\"\n\u{7}'d'"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
    }

    #[test]
    fn numbers_read_well() {
        let shown: Vec<String> =
            [0.0, 0.1, 249.96, 1234.5, 1e6, 2.5e9, 1e-6, -3.1649, f64::NAN, f64::INFINITY]
                .map(short)
                .into();
        let expected = [
            "0",
            "0.1",
            "250",
            "1234",
            "1\u{2009}000\u{2009}000",
            "2.5·10⁹",
            "10⁻⁶",
            "\u{2212}3.16",
            "–",
            "∞",
        ];
        assert_eq!(shown, expected);
        assert_eq!(
            (coordinate(-0.001), coordinate(12.5), coordinate(100.0)),
            ("0".into(), "12.5".into(), "100".into())
        );
    }

    #[test]
    fn a_text_too_long_is_cut_with_an_ellipsis() {
        assert_eq!(cut("short", 20.0), "short");
        let cut = cut("a very long name of a system", 8.0);
        assert!(cut.ends_with('…') && width(&cut) <= 8.5, "{cut}");
    }
}
