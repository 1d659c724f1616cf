package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"skep/host/client"
	"skep/spec/mail"
)

// mailview prints the mail of a task as it flows, one message a line. One goroutine
// may call event, and another tick.
type mailview struct {
	mu    sync.Mutex
	w     *locked
	style style
	width int // of a line
	names int // of the two columns that hold names
	start time.Time
	all   bool   // print other events as well
	last  string // id of the message that was printed last
	begun bool
	err   error // of the first line that could not be written

	live      bool                // there is a line that can change
	emissions map[int64]emissions // of turns that are under way
	idle      idleIndicator
}

// Bounds of a column that holds names, and of a line.
const (
	minNames, maxNames    = 10, 24
	defaultWidth, minWide = 110, 60
	timeColumn            = 8
	typeColumn            = 9
	costColumn            = 8
)

// newMailview prints to w. Names that are known beforehand make the columns
// fit from the first line on.
func newMailview(w io.Writer, st style, width int, names ...string) *mailview {
	out, ok := w.(*locked)
	if !ok {
		out = &locked{w: w}
	}
	v := &mailview{w: out, style: st, width: max(cmp.Or(width, defaultWidth), minWide), names: minNames, emissions: map[int64]emissions{}}
	for _, name := range names {
		v.widenNames(name)
	}
	return v
}

func (v *mailview) widenNames(name string) {
	v.names = min(max(v.names, utf8.RuneCountInString(name)), maxNames)
}

// printEvent prints mail, what an agent shows meanwhile, or its failure.
func (v *mailview) printEvent(e client.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	at, _ := time.Parse(time.RFC3339Nano, e.Timestamp)
	if v.start.IsZero() {
		v.start = at
	}
	v.idle.recordEvent(at, e)
	if m, ok := e.Message(); ok {
		v.printMessage(at, m, costOf(e))
		return
	}
	if m, ok := e.Emission(); ok {
		v.printEmission(at, e.Name, m)
		return
	}
	switch {
	case failureEvents[e.Name]:
		v.printFailure(at, e)
	case e.Ends():
		v.wipe()
		clear(v.emissions)
	case v.all && e.Name != "task_complete_call":
		v.printOther(at, e)
	}
}

// silentTools are the tools whose calls need no line: their results have one.
var silentTools = map[string]bool{
	"send_request": true, "send_response": true, "send_broadcast": true, "send_interrupt": true,
	"send_interswarm_broadcast": true,
	"task_complete":             true, "await_message": true,
}

// failureEvents are the events of a failure.
var failureEvents = map[string]bool{
	"agent_error": true, "run_loop_error": true, "interswarm_error": true, "action_error": true,
	"interswarm_message_error": true,
}

// printMessage prints one line for a message, to however many agents it goes.
func (v *mailview) printMessage(at time.Time, m mail.Message, cost string) {
	if m.ID == v.last {
		return
	}
	v.last = m.ID
	from, to := sender(m), recipients(m)
	v.widenNames(from)
	v.widenNames(to)
	v.printTitles()
	left := v.time(at) + v.style.cyan(pad(clip(from, v.names), v.names)) + v.style.dim(" → ") +
		v.style.cyan(pad(clip(to, v.names), v.names)) + "  " + v.kind(m) + "  " +
		v.style.dim(fmt.Sprint(mail.Tier(m))) + "  " + v.style.dim(fmt.Sprintf("%*s  ", costColumn, cost))
	v.line(left, v.text(m))
}

// costOf is the computing time of the turn that sent a message, at the first
// of its messages.
func costOf(e client.Event) string {
	var extra struct {
		Cost *struct {
			CPU float64 `json:"cpu_ms"`
		} `json:"cost"`
	}
	if json.Unmarshal(e.Extra, &extra) != nil || extra.Cost == nil {
		return ""
	}
	return fmt.Sprintf("%.1f ms", extra.Cost.CPU)
}

// printTitles prints the titles of the columns, once.
func (v *mailview) printTitles() {
	if v.begun {
		return
	}
	v.begun = true
	titles := pad("", timeColumn-4) + "time  " + pad("from", v.names) + "   " + pad("to", v.names) + "  " +
		pad("type", typeColumn) + "  tier      cost  mail"
	v.line(v.style.dim(titles), "")
}

func (v *mailview) line(left, text string) {
	_, err := io.WriteString(v.w, strings.TrimRight(left+text, " ")+"\n")
	v.failed(err)
}

func (v *mailview) failed(err error) {
	if v.err == nil {
		v.err = err
	}
}

func (v *mailview) time(at time.Time) string {
	return v.style.dim(fmt.Sprintf("%*s  ", timeColumn, since(at.Sub(v.start))))
}

// kind renders the type of a message in its colour.
func (v *mailview) kind(m mail.Message) string {
	text := pad(kindName(m.Type), typeColumn)
	switch {
	case m.Payload.Sender.Type == mail.System:
		return v.style.red(text)
	case m.Type == mail.Request:
		return v.style.blue(text)
	case m.Type == mail.Response:
		return v.style.green(text)
	case m.Type == mail.Interrupt:
		return v.style.magenta(text)
	case m.Type == mail.BroadcastComplete:
		return v.style.bold(text)
	}
	return v.style.yellow(text)
}

// text renders the subject and the first line of the body, as far as they fit.
func (v *mailview) text(m mail.Message) string {
	room := v.width - (timeColumn + 2 + v.names + 3 + v.names + 2 + typeColumn + 2 + 4 + costColumn + 2)
	return v.style.mailText(m, room)
}

// usualSubjects do not describe their message.
var usualSubjects = map[string]bool{"": true, "New Message": true, mail.SubjectTaskComplete: true}

func (s style) mailText(m mail.Message, room int) string {
	subject, body := oneLine(m.Payload.Subject), oneLine(m.Payload.Body)
	if usualSubjects[subject] {
		return clip(body, room)
	}
	subject = clip(subject, room)
	room -= utf8.RuneCountInString(subject) + 3
	if body == "" || room < 4 {
		return s.bold(subject)
	}
	return s.bold(subject) + s.dim(" · ") + clip(body, room)
}

// printFailure prints what went wrong with an agent.
func (v *mailview) printFailure(at time.Time, e client.Event) {
	v.printTitles()
	who := cmp.Or(inLine(e.Caller()), "host")
	text := strings.TrimPrefix(oneLine(e.Description), "agent "+who+": ")
	text = strings.TrimPrefix(text, fmt.Sprintf("agent %q ", who))
	v.line(v.time(at)+v.style.red(pad(clip(who, v.names), v.names)), v.style.red(" ✗ "+clip(text, v.room())))
}

// printOther prints an event that is not mail: what an agent has called, mostly.
func (v *mailview) printOther(at time.Time, e client.Event) {
	who, text := cmp.Or(inLine(e.Caller()), "host"), inLine(e.Name)
	if tool, args, ok := toolCall(e); ok {
		if silentTools[tool] {
			return
		}
		text = oneLine(tool + " " + args)
	}
	v.printTitles()
	v.line(v.time(at)+v.style.dim(pad(clip(who, v.names), v.names)), v.style.dim(" · "+clip(text, v.room())))
}

// room is what is left of a line after the time and one name.
func (v *mailview) room() int { return v.width - (timeColumn + 2 + v.names + 3) }

// toolCall reads what an agent has called.
func toolCall(e client.Event) (tool, args string, ok bool) {
	var extra struct {
		Tool string          `json:"tool_name"`
		Args json.RawMessage `json:"tool_args"`
	}
	ok = e.Name == "tool_call" && json.Unmarshal(e.Extra, &extra) == nil
	return extra.Tool, string(extra.Args), ok
}

// sender is how a message's writer is called in a line. Persons write in their
// own tasks only.
func sender(m mail.Message) string {
	switch s := m.Payload.Sender; s.Type {
	case mail.User, mail.Admin:
		return "you"
	case mail.System:
		return "system"
	default:
		return inLine(s.Name)
	}
}

func recipients(m mail.Message) string {
	names := make([]string, len(m.Payload.Recipients))
	for i, r := range m.Payload.Recipients {
		names[i] = inLine(r.Name)
	}
	return strings.Join(names, ", ")
}

func kindName(t mail.Type) string {
	if t == mail.BroadcastComplete {
		return "complete"
	}
	return inLine(string(t))
}
