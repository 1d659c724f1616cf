package swarm

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"skep/spec/mail"
)

// Text is the event's description for people. Messages and answers are rendered here,
// so that the log does not hold every body twice.
func (e Event) Text() string {
	if e.Description != "" {
		return e.Description
	}
	if m, ok := e.message(); ok {
		if m.Type == mail.BroadcastComplete {
			return "task_complete response from " + m.Payload.Sender.Name + ":\n" + m.Payload.Body
		}
		return "sending message:\n" + Prompt(m)
	}
	if a, ok := e.Answer(); ok {
		return "response: '" + a.Body + "'"
	}
	return e.Name
}

// escape keeps a body from closing its element and forging another (G-75).
var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

// Prompt renders a message as text for a model.
func Prompt(m mail.Message) string {
	var b strings.Builder
	p := m.Payload
	b.WriteString("<incoming_message>\n<timestamp>" + escape.Replace(m.Timestamp) + "</timestamp>\n")
	b.WriteString(`<from type="` + escape.Replace(string(p.Sender.Type)) + `">` + escape.Replace(p.Sender.Name) + "</from>\n<to>\n")
	for _, to := range p.Recipients {
		b.WriteString(`<address type="` + escape.Replace(string(to.Type)) + `">` + escape.Replace(to.Name) + "</address>\n")
	}
	b.WriteString("</to>\n<subject>" + escape.Replace(p.Subject) + "</subject>\n<body>" + escape.Replace(p.Body) + "</body>\n</incoming_message>")
	return b.String()
}

// message returns the message of a new_message event.
func (e Event) message() (mail.Message, bool) {
	if e.Name != "new_message" {
		return mail.Message{}, false
	}
	if at, ok := bytes.CutPrefix(e.Extra, []byte(`{"full_message":`)); ok { // as logMessage writes it
		if m, err := (mail.ParseOptions{}).LeadingMessage(at); err == nil {
			return m, true
		}
	}
	var extra struct {
		Message *mail.Message `json:"full_message"`
	}
	if json.Unmarshal(e.Extra, &extra) != nil || extra.Message == nil {
		return mail.Message{}, false
	}
	return *extra.Message, true
}

// runeStart returns the index at which the rune containing byte i begins.
func runeStart(text string, i int) int {
	for i > 0 && i < len(text) && !utf8.RuneStart(text[i]) {
		i--
	}
	return i
}
