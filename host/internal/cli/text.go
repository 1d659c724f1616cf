package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// printable escapes what could move a terminal's cursor, change its colours or
// turn the order of letters around: agents and hosts choose these texts. Line
// breaks and tabs stay.
func printable(text string) string { return escaped(text, "\n\t") }

// inLine is printable for what is only a part of a line: a line break in it could
// make a line that looks like one of ours.
func inLine(text string) string { return escaped(text, "") }

// escaped writes characters that are not for terminals as Go does, but for those
// in keep.
func escaped(text, keep string) string {
	return escapedWhere(text, func(r rune) bool { return unprintable(r) && !strings.ContainsRune(keep, r) })
}

// inLineVisible is inLine for texts that a person approves: characters of no width are
// escaped too.
func inLineVisible(text string) string {
	return escapedWhere(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

func escapedWhere(text string, bad func(rune) bool) string {
	if utf8.ValidString(text) && strings.IndexFunc(text, bad) < 0 {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case bad(r):
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// unprintable are control characters, those that change the direction of text,
// and line breaks of other kinds.
func unprintable(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

// indentBelow indents all lines of a text but the first.
func indentBelow(text string, n int) string {
	return strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", n))
}

// oneLine returns the first line of a text and how many more there are.
func oneLine(text string) string {
	text = strings.TrimSpace(printable(text))
	first, rest, _ := strings.Cut(text, "\n")
	first = strings.ReplaceAll(strings.TrimSpace(first), "\t", " ")
	switch more := strings.Count(rest, "\n") + 1; {
	case rest == "":
		return first
	case more == 1:
		return first + " (1 more line)"
	default:
		return fmt.Sprintf("%s (%d more lines)", first, more)
	}
}

// clip shortens a text to n characters.
func clip(text string, n int) string {
	if n < 1 || utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}

// pad fills a text up to n characters.
func pad(text string, n int) string {
	return text + strings.Repeat(" ", max(0, n-utf8.RuneCountInString(text)))
}

// since renders a span in the width of a column.
func since(d time.Duration) string {
	switch {
	case d < 0:
		return "0.000"
	case d < 100*time.Second:
		return fmt.Sprintf("%.3f", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// span renders a duration to three digits.
func span(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < time.Second:
		return digits(float64(d.Microseconds())/1e3) + " ms"
	case d < 100*time.Second:
		return digits(d.Seconds()) + " s"
	}
	return d.Round(time.Second).String()
}

// digits renders a number below 1000 to two or three digits.
func digits(f float64) string {
	if f >= 99.5 {
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.2g", f)
}

// quantity renders a number to three digits with k, M, G or T.
func quantity(n uint64) string {
	units := []string{"", "k", "M", "G", "T", "P"}
	f, i := float64(n), 0
	for f >= 999.5 && i < len(units)-1 {
		f /= 1000
		i++
	}
	if i == 0 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%.3g%s", f, units[i])
}

// plural renders a number with its noun.
func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
