package gateway

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

const (
	// maxExtension bounds the text of an extension member, in bytes.
	maxExtension = 1024
	// maxHops bounds the number of swarms that a message has passed by its own word.
	maxHops = 1000
)

// ExtensionText returns the text of a member that its protocol leaves to the
// sender, or "" for a value that is no printable text.
func ExtensionText(member json.RawMessage) (text string) {
	_ = json.Unmarshal(member, &text) // another type is none
	if len(text) > maxExtension || !utf8.ValidString(text) || !mail.Printable(text) {
		return ""
	}
	return text
}

// WithTrace returns members and the fields of a trace, whose names are the headers' after a
// prefix. The members may be nil and stay as they are.
func WithTrace(members map[string]json.RawMessage, prefix string, trace swarm.Trace) map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	maps.Copy(all, members)
	trace.Fields(func(name, value string) {
		quoted, _ := json.Marshal(value) // a text always has a form
		all[prefix+name] = quoted
	})
	return all
}

// ExtensionHops returns how many swarms a message has passed by its own word: a number in
// any form of JSON's, or a text of one. A part of a swarm counts as a whole one, and what is
// no number as none.
func ExtensionHops(member json.RawMessage) int {
	text := strings.Trim(string(member), `"`)
	if !json.Valid([]byte(text)) { // as NaN, which strconv reads
		return 0
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) { // a range error comes with an infinity
		return 0
	}
	return int(math.Ceil(min(max(n, 0), maxHops)))
}

// maxExcerpt is how much of a body is a subject, in characters.
const maxExcerpt = 60

// Excerpt returns the begin of a text as one line, for a message that has no subject.
func Excerpt(text string) string {
	return head(strings.Join(strings.Fields(head(text, 4*maxExcerpt)), " "), maxExcerpt)
}

// head is the begin of a text, at most so many characters.
func head(text string, most int) string {
	for i := range text {
		if most == 0 {
			return text[:i]
		}
		most--
	}
	return text
}
