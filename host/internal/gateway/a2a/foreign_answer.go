package a2a

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/google/uuid"

	"skep/host/internal/gateway"
)

// outcome returns what the foreign agent says, without addresses.
func (f *foreignTask) outcome() (gateway.Ask, error) {
	open := f.record.Open
	a := gateway.Ask{Kind: gateway.Answers, ID: "answer-" + open.Message, Info: map[string]any{"protocol": Name, "state": string(f.status.State)}}
	var err error
	switch {
	case f.message != nil:
		a.Body, a.Parts, err = contentOf(f.message.Parts)
		delete(a.Info, "state")
	case f.status.State == a2a.TaskStateInputRequired:
		a.Kind, a.Reply = gateway.Asks, true
		a.ID = uuid.NewSHA1(uuid.NameSpaceURL, []byte(string(open.Task)+"\n"+open.Message)).String()
		a.Body = cmp.Or(textOf(f.status.Message), "The agent needs input.")
		a.Note, err = json.Marshal(asked{Task: open.Task, Context: f.record.Context, Answers: open.Answers})
	case f.status.State == a2a.TaskStateCompleted:
		a.Body, a.Parts, err = f.answer()
	default:
		code := strings.TrimPrefix(string(f.status.State), "TASK_STATE_")
		a.Subject, a.Body = "["+code+"]", cmp.Or(textOf(f.status.Message), "The agent gives no reason.")
		a.Info["error"] = code
	}
	return a, err
}

// answer is the content of the artifacts, or else of the last message.
func (f *foreignTask) answer() (string, []gateway.Part, error) {
	var texts []string
	var parts []gateway.Part
	for _, artifact := range f.artifacts {
		text, more, err := contentOf(joinText(artifact.Parts))
		if err != nil {
			return "", nil, err
		}
		if text != "" {
			texts = append(texts, text)
		}
		parts = append(parts, more...)
	}
	if len(f.artifacts) == 0 {
		return textOf(f.status.Message), nil, nil
	}
	return strings.Join(texts, "\n\n"), parts, nil
}

// joinText joins neighbouring texts: the pieces of one artifact are one text.
func joinText(parts a2a.ContentParts) (out a2a.ContentParts) {
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			out = append(out, a2a.NewTextPart(text.String()))
			text.Reset()
		}
	}
	for _, p := range parts {
		if p != nil {
			if more, ok := p.Content.(a2a.Text); ok {
				text.WriteString(string(more))
				continue
			}
		}
		flush()
		out = append(out, p)
	}
	flush()
	return out
}

// textOf is the text of a message that may be missing.
func textOf(m *a2a.Message) string {
	if m == nil {
		return ""
	}
	text, _, err := contentOf(m.Parts)
	if err != nil {
		return ""
	}
	return text
}
