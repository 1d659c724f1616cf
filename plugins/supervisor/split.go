package main

import "strings"

// splitQuestion finds the parts of a question: every text in quotes with what
// is asked about it, and every arithmetic expression outside of them.
func splitQuestion(question string) []part {
	var parts []part
	for question != "" {
		before, text, after, ok := cutQuoted(question)
		if !ok {
			return append(parts, splitPlain(question)...)
		}
		sums, rest := cutSums(before)
		parts = append(parts, sums...)
		parts = append(parts, part{Kind: statistics, Body: clause(rest) + ` "` + text + `"`})
		question = after
	}
	return parts
}

// quotes are the pairs that can stand around a text.
var quotes = [][2]string{{`"`, `"`}, {"“", "”"}, {"„", "“"}, {"«", "»"}}

// cutQuoted parts a question at its first quoted text.
func cutQuoted(s string) (before, text, after string, ok bool) {
	first := len(s)
	for _, q := range quotes {
		b, rest, found := strings.Cut(s, q[0])
		if !found || len(b) >= first {
			continue
		}
		if t, a, closed := strings.Cut(rest, q[1]); closed && strings.TrimSpace(t) != "" {
			before, text, after, ok, first = b, t, a, true, len(b)
		}
	}
	return before, text, after, ok
}

// subjects are words that make a question one about a text.
var subjects = []string{"word", "vowel", "consonant", "letter", "character", "sentence"}

// splitPlain finds parts where nothing is in quotes. A text may follow a colon.
func splitPlain(s string) []part {
	if before, text, ok := strings.Cut(s, ":"); ok && strings.TrimSpace(text) != "" {
		for _, word := range subjects {
			if strings.Contains(strings.ToLower(before), word) {
				sums, rest := cutSums(before)
				return append(sums, part{Kind: statistics, Body: clause(rest) + ": " + strings.TrimSpace(text)})
			}
		}
	}
	sums, _ := cutSums(s)
	return sums
}

// spoken are operators in words.
var spoken = strings.NewReplacer(
	" plus ", " + ", " minus ", " - ", " times ", " * ", " multiplied by ", " * ", " divided by ", " / ",
	" modulo ", " % ", " mod ", " % ", " to the power of ", " ^ ",
	"×", "*", "·", "*", "÷", "/", "−", "-",
)

// cutSums takes the arithmetic expressions out of a text and returns the rest.
func cutSums(s string) (sums []part, rest string) {
	s = spoken.Replace(s)
	var left strings.Builder
	for i := 0; i < len(s); {
		span := expressionAt(s, i)
		if span == "" {
			left.WriteByte(s[i])
			i++
			continue
		}
		if expression := trim(span); isSum(expression) {
			sums = append(sums, part{Kind: arithmetic, Body: expression})
		} else {
			left.WriteString(span)
		}
		i += len(span)
	}
	return sums, left.String()
}

const operators = "+-*/^%"

// expressionAt returns the characters from i on that can stand in an
// expression. One begins where no word goes on.
func expressionAt(s string, i int) string {
	if i > 0 && isWordByte(s[i-1]) {
		return ""
	}
	end := i
	for end < len(s) && strings.IndexByte("0123456789.() "+operators, s[end]) >= 0 {
		end++
	}
	if end < len(s) && isWordByte(s[end]) { // 3D, 2nd: the last piece belongs to a word
		end = i + len(strings.TrimRight(s[i:end], "0123456789.("))
	}
	return s[i:end]
}

// trim drops what belongs to the sentence around an expression.
func trim(s string) string {
	s = strings.TrimRight(s, " ."+operators+"(")
	return strings.TrimLeft(s, " .*/^%)")
}

// isSum reports whether there is anything to work out: two operands at least.
func isSum(s string) bool {
	i := strings.IndexAny(s, "0123456789")
	if i < 0 {
		return false
	}
	return strings.ContainsAny(strings.TrimLeft(s[i:], "0123456789."), operators)
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80 || c == '_'
}

// clause tidies what is asked about a text: the words next to it count, without
// what joined them to the part before.
func clause(s string) string {
	s = strings.Trim(s, " \t\r\n,;.?!:")
	for _, word := range []string{"and ", "And ", "also ", "then "} {
		s = strings.TrimPrefix(s, word)
	}
	if _, after, ok := strings.Cut(s, ", and "); ok {
		s = after
	}
	if s = strings.TrimSpace(s); s == "" {
		return "what can be counted in"
	}
	return s
}
