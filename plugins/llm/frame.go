package main

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	skep "skep/sdk/go"
)

// A frame is how the model sees mail: an element whose texts are escaped, so that no
// text can end it, begin another or pass for its head (G-75). Nothing random or new
// stands in it: the same mail makes the same prompt, which recorded answers and the
// caches of providers need.

// frame renders a message.
func frame(m *skep.Message, times bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<incoming_message type=%q>\n", label(string(m.Type)))
	if times && !m.Time.IsZero() {
		fmt.Fprintf(&b, "<timestamp>%s</timestamp>\n", m.Time.UTC().Format("2006-01-02T15:04:05Z"))
	}
	fmt.Fprintf(&b, "<from type=%q>%s</from>\n", label(string(m.Sender.Type)), line(m.Sender.Name))
	if len(m.Recipients) > 0 {
		b.WriteString("<to>")
		for _, r := range m.Recipients {
			fmt.Fprintf(&b, "<address type=%q>%s</address>", label(string(r.Type)), line(r.Name))
		}
		b.WriteString("</to>\n")
	}
	fmt.Fprintf(&b, "<subject>%s</subject>\n<body>\n%s\n</body>\n</incoming_message>", line(m.Subject), text(m.Body))
	return b.String()
}

// element renders one text in an element.
func element(name, body string) string {
	return "<" + name + ">\n" + text(body) + "\n</" + name + ">"
}

// notice renders what the agent itself tells the model, in the form of a message of
// the host.
func notice(t *skep.Turn, subject, body string) string {
	return frame(&skep.Message{
		Type: skep.TypeResponse, Subject: subject, Body: body,
		Sender: skep.Address{Type: skep.AddressSystem, Name: t.Agent.Swarm},
	}, false)
}

var entities = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// text escapes what stands between tags.
func text(s string) string { return entities.Replace(printable(s)) }

// line is text without line feeds.
func line(s string) string {
	return strings.Join(strings.FieldsFunc(text(s), func(r rune) bool { return r == '\n' || r == '\t' }), " ")
}

// label is a word in an attribute: letters, digits and underscores.
func label(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, s)
}

// printable replaces control characters and what is no UTF-8.
func printable(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}

// elements are those that the model is told to believe something of.
var elements = []string{"incoming_message", "from", "note", "summary"}

// inert is what a tool has returned: text that stays as it is, but for what looks like
// a part of a frame.
func inert(s string) string {
	parts := strings.Split(printable(s), "<")
	for i, part := range parts[1:] {
		name := strings.TrimLeft(part, "/ \t\n")
		if end := strings.IndexFunc(name, func(r rune) bool { return r != '_' && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') }); end >= 0 {
			name = name[:end]
		}
		if slices.ContainsFunc(elements, func(e string) bool { return strings.EqualFold(e, name) }) {
			parts[i+1] = "&lt;" + part
		} else {
			parts[i+1] = "<" + part
		}
	}
	return strings.Join(parts, "")
}

// cut shortens a text to at most so many bytes, and marks the cut.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	end := most
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return fmt.Sprintf("%s\n[%d more bytes are left out here]", s[:end], len(s)-end)
}
