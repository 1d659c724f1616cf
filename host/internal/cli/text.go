package cli

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// printable replaces what could move a terminal's cursor or change its colours:
// agents and hosts choose these texts. Line breaks and tabs stay.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == utf8.RuneError, unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return '\uFFFD'
		}
		return r
	}, text)
}

// oneLine gives the first line of a text and how many more there are.
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

// since gives a span in the width of a column.
func since(d time.Duration) string {
	switch {
	case d < 0:
		return "0.000"
	case d < 100*time.Second:
		return fmt.Sprintf("%.3f", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// span gives a duration to three digits.
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

// digits gives a number below 1000 to two or three digits.
func digits(f float64) string {
	if f >= 99.5 {
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.2g", f)
}

// quantity gives a number to three digits with k, M, G or T.
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

// plural gives a number with its noun.
func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
