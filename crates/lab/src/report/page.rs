//! The order and the looks of a page.

use super::html::{add, anchor, folded, open, verdicts};
use super::{Report, Section};
use crate::figure::escape;

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1f2328;--muted:#59636e;--line:#d1d9e0;--soft:#f6f8fa;\
--good:#116329;--good-soft:#dafbe1;--bad:#a40e26;--bad-soft:#ffebe9;--open:#7d4e00;--open-soft:#fff8c5;--link:#0969da}
@media (prefers-color-scheme:dark){:root{--ink:#e6edf3;--muted:#9da7b3;--line:#3d444d;--soft:#151b23;\
--good:#7ee787;--good-soft:#12261e;--bad:#ffa198;--bad-soft:#301a1f;--open:#e3b341;--open-soft:#272115;--link:#79b8ff}\
body{background:#0d1117}}
body{color:var(--ink);font:16px/1.55 system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,'DejaVu Sans',sans-serif;\
max-width:64rem;margin:0 auto;padding:2rem 1.25rem 4rem}
h1{font-size:1.7rem;line-height:1.25;margin:0 0 .8rem}
h2{font-size:1.25rem;margin:2.6rem 0 .6rem;padding-bottom:.3rem;border-bottom:1px solid var(--line)}
p{margin:.6rem 0;max-width:48rem}
a{color:var(--link);text-decoration:none}a:hover{text-decoration:underline}
dl.facts{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1.2rem;margin:1rem 0;padding:.9rem 1.1rem;\
background:var(--soft);border:1px solid var(--line);border-radius:8px;font-size:.92rem}
dt{color:var(--muted)}dd{margin:0;overflow-wrap:anywhere}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:.88rem;margin:.7rem 0;min-width:40%}
th{text-align:left;color:var(--muted);font-weight:600;vertical-align:bottom}
th,td{padding:.35rem .8rem .35rem 0;border-bottom:1px solid var(--line)}
td{vertical-align:top}td.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
table.verdicts{width:100%}table.verdicts td:first-child{white-space:nowrap}
.good,.bad,.open{display:inline-block;padding:.05rem .55rem;border-radius:.5rem;font-weight:600}
.good{color:var(--good);background:var(--good-soft)}
.bad{color:var(--bad);background:var(--bad-soft)}
.open{color:var(--open);background:var(--open-soft)}
figure{margin:1.2rem 0}figure svg{max-width:100%;height:auto;display:block}
details{margin:.5rem 0}summary{cursor:pointer;color:var(--link)}
pre{background:var(--soft);border:1px solid var(--line);border-radius:8px;padding:.8rem 1rem;overflow-x:auto;font-size:.88rem}
@media print{details{display:none}h2{break-after:avoid}figure{break-inside:avoid}}
";

pub(super) fn page(report: &Report) -> String {
    let mut html = String::new();
    let title = escape(&report.title);
    add(
        &mut html,
        format_args!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
        ),
    );
    prose(&mut html, &report.lead);
    facts(&mut html, &report.facts);
    if !report.verdicts.is_empty() {
        html.push_str("<h2 id=\"verdicts\">Verdicts</h2>\n");
        verdicts(&mut html, &report.verdicts);
    }
    for part in &report.sections {
        section(&mut html, part);
    }
    commands(&mut html, &report.commands);
    html.push_str("</body>\n</html>\n");
    html
}

fn section(html: &mut String, section: &Section) {
    let (id, title) = (anchor(&section.id), escape(&section.title));
    add(html, format_args!("<section id=\"{id}\">\n<h2>{title}</h2>\n"));
    prose(html, &section.prose);
    verdicts(html, &section.verdicts);
    if let Some(numbers) = &section.numbers {
        open(html, numbers);
    }
    for figure in &section.figures {
        add(html, format_args!("<figure>\n{}</figure>\n", figure.to_svg()));
    }
    for table in &section.tables {
        folded(html, table);
    }
    html.push_str("</section>\n");
}

fn prose(html: &mut String, paragraphs: &[String]) {
    for paragraph in paragraphs {
        add(html, format_args!("<p>{}</p>\n", escape(paragraph)));
    }
}

fn facts(html: &mut String, facts: &[(String, String)]) {
    if facts.is_empty() {
        return;
    }
    html.push_str("<dl class=\"facts\">\n");
    for (name, value) in facts {
        add(html, format_args!("<dt>{}<dd>{}\n", escape(name), escape(value)));
    }
    html.push_str("</dl>\n");
}

fn commands(html: &mut String, commands: &[String]) {
    if commands.is_empty() {
        return;
    }
    html.push_str("<h2 id=\"again\">Make it again</h2>\n<pre>");
    for command in commands {
        add(html, format_args!("{}\n", escape(command)));
    }
    html.push_str("</pre>\n");
}

#[cfg(test)]
mod tests {
    use super::super::{Tone, VerdictRow};
    use super::*;
    use crate::figure::{Axis, Figure, Kind, Series};
    use crate::table::{Table, Value};

    fn report() -> Report {
        let mut figure = Figure::new("f", "F", Kind::Line, Axis::linear("x"), Axis::linear("y"));
        figure.series.push(Series::new("<A>", &[(0.0, 1.0), (1.0, 2.0)]));
        let mut table = Table::new("runs", &["system", "goodput_mbps"]);
        table.push(vec!["<A>".into(), (1.0 / 3.0).into()]);
        table.push(vec!["B & C".into(), Value::Missing]);
        Report {
            title: "A & B".into(),
            lead: vec!["first <p>".into()],
            facts: vec![("command".into(), "anabranch lab run <x>".into())],
            verdicts: vec![VerdictRow {
                what: "plt.loss".into(),
                section: Some("plt.loss".into()),
                paper: "> 90%".into(),
                measured: "240 Mb/s".into(),
                tone: Tone::Bad,
                verdict: "differs: 4% below".into(),
            }],
            sections: vec![Section {
                id: "plt.loss".into(),
                title: "Loss".into(),
                figures: vec![figure.clone(), Figure { name: "g".into(), ..figure }],
                tables: vec![table],
                ..Section::default()
            }],
            commands: vec!["anabranch lab claims plt.loss --quick".into()],
        }
    }

    #[test]
    fn a_page_has_everything_inside_it_and_runs_nothing() {
        let html = report().to_html();
        for wrong in ["http:", "https:", "<script", "src=", "@import", "url(//"] {
            let found = html.replace("http://www.w3.org/2000/svg", "").contains(wrong);
            assert!(!found, "{wrong}");
        }
        assert_eq!(html.matches("<svg").count(), 2);
        assert_eq!(html, report().to_html());
    }

    #[test]
    fn markup_in_names_is_shown_and_not_obeyed() {
        let html = report().to_html();
        for text in [
            "<title>A &amp; B</title>",
            "first &lt;p&gt;",
            "lab run &lt;x&gt;",
            "<td>&lt;A&gt;",
            "<td>B &amp; C<td class=\"n\"></tr>",
            "&gt; 90%",
        ] {
            assert!(html.contains(text), "{text}");
        }
    }

    #[test]
    fn a_verdict_links_to_its_section_and_says_how_it_ended_in_words() {
        let html = report().to_html();
        assert!(html.contains("<a href=\"#plt-loss\">plt.loss</a>"));
        assert!(html.contains("<section id=\"plt-loss\">"));
        assert!(html.contains("<span class=\"bad\">differs: 4% below</span>"));
    }

    #[test]
    fn a_table_is_rounded_to_read_and_exact_in_its_csv() {
        let html = report().to_html();
        assert!(html.contains("<td class=\"n\">0.333"));
        assert!(html.contains("0.3333333333333333%0A"), "{html}");
        assert!(html.contains("%3CA%3E,"));
    }

    #[test]
    fn a_long_table_says_how_much_it_leaves_out() {
        let mut report = report();
        let table = &mut report.sections[0].tables[0];
        table.rows = vec![vec!["x".into(), 1.0.into()]; 250];
        let html = report.to_html();
        assert!(html.contains("runs (250 rows)") && html.contains("50 more rows are in runs.csv"));
    }

    #[test]
    fn an_empty_report_is_a_page_all_the_same() {
        let html = Report::default().to_html();
        assert!(html.starts_with("<!doctype html>") && html.ends_with("</html>\n"));
        assert!(!html.contains("<table") && !html.contains("<dl class"));
    }
}
