package conform

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"skep/spec/conformance"
)

// otherWords says where a turn first asked or wrote something else than usual,
// with both texts; empty if it did not.
func otherWords(usual, other Outcome) string {
	for i := range max(len(usual.Ops), len(other.Ops)) {
		if opText(usual.Ops, i) == opText(other.Ops, i) {
			continue
		}
		place := fmt.Sprintf("op %d says something else:", i+1)
		if name := opAt(usual.Ops, i); name != "" && name == opAt(other.Ops, i) {
			place = fmt.Sprintf("op %d (%s) says something else:", i+1, name)
		}
		return place + both(saidAt(usual.Ops, i), saidAt(other.Ops, i))
	}
	if a, b := string(usual.Output), string(other.Output); a != b {
		return "the turn result says something else:" + both(a, b)
	}
	return ""
}

// opAt names the op at a place, empty if there is none.
func opAt(ops []conformance.Op, i int) string {
	if i >= len(ops) {
		return ""
	}
	return opName(ops[i].Number)
}

// saidAt is what the op at a place is and asks for.
func saidAt(ops []conformance.Op, i int) string {
	if i >= len(ops) {
		return "no such op"
	}
	return strings.TrimSpace(opName(ops[i].Number) + " " + ops[i].Request)
}

// Bounds of a text that is shown for comparison, in bytes.
const (
	shownText  = 160
	shownAhead = 40 // of the first difference
)

// both shows two texts below each other, where they begin to differ.
func both(usual, other string) string {
	same := 0
	for same < len(usual) && same < len(other) && usual[same] == other[same] {
		same++
	}
	from := 0
	if max(len(usual), len(other)) > shownText {
		from = max(0, same-shownAhead)
	}
	return "\nusually " + window(usual, from) + "\nthen    " + window(other, from)
}

// window cuts a text to what is shown of it.
func window(text string, from int) string {
	before, after := "", ""
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	if from > 0 {
		before = "…"
	}
	text = text[from:]
	if len(text) > shownText {
		n := shownText
		for n > 0 && !utf8.RuneStart(text[n]) {
			n--
		}
		text, after = text[:n], "…"
	}
	if before+text+after == "" {
		return "nothing"
	}
	return before + text + after
}
