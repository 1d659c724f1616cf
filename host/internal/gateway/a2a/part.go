package a2a

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"skep/host/internal/gateway"
)

// maxBlobs bounds the blobs that one task carries, in bytes; what is beyond is named only.
const maxBlobs = 16 << 20

const jsonType = "application/json"

// contentOf returns the text of a message's parts, joined by line ends, and what is not
// text. Data is written as JSON, an address as itself: it is not fetched.
func contentOf(parts a2a.ContentParts) (body string, blobs []gateway.Part, err error) {
	var lines []string
	for _, p := range parts {
		if p == nil {
			return "", nil, invalid("a part is null")
		}
		switch content := p.Content.(type) {
		case a2a.Text:
			lines = append(lines, string(content))
		case a2a.Data:
			raw, err := json.Marshal(content.Value)
			if err != nil {
				return "", nil, invalid("a data part cannot be written as JSON")
			}
			lines = append(lines, string(raw))
		case a2a.URL:
			lines = append(lines, string(content))
		case a2a.Raw:
			blobs = append(blobs, gateway.Part{Name: p.Filename, Type: cmp.Or(p.MediaType, "application/octet-stream"), Data: content})
		default:
			return "", nil, invalid("a part has neither text, data, raw nor url")
		}
	}
	body = strings.Join(lines, "\n")
	if len(body) > gateway.MaxText {
		blobs = append(blobs, gateway.Part{Name: "message.txt", Type: "text/plain", Data: []byte(body)})
		body = ""
	}
	return body, blobs, nil
}

// partsOf returns a text as parts: a JSON object or array is data.
func partsOf(text string) a2a.ContentParts {
	var value any
	if trimmed := strings.TrimSpace(text); trimmed != "" && strings.ContainsRune("{[", rune(trimmed[0])) && json.Unmarshal([]byte(trimmed), &value) == nil {
		part := a2a.NewDataPart(value)
		part.MediaType = jsonType
		return a2a.ContentParts{part}
	}
	part := a2a.NewTextPart(text)
	part.MediaType = "text/plain"
	return a2a.ContentParts{part}
}

// answerParts returns an answer's text and blobs.
//
// room is how many bytes of blobs may be added; it is reduced by what was. What is larger,
// or is not there, is only named.
func (g *Gateway) answerParts(ctx context.Context, x gateway.Exchange, a gateway.Answer, room *int64) (a2a.ContentParts, error) {
	var parts a2a.ContentParts
	if a.Body != "" || len(a.Parts) == 0 {
		parts = partsOf(a.Body)
	}
	for _, ref := range a.Parts {
		part, err := g.blobPart(ctx, x, ref, room)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// blobPart returns a blob of an answer, or its name.
func (g *Gateway) blobPart(ctx context.Context, x gateway.Exchange, ref gateway.PartRef, room *int64) (*a2a.Part, error) {
	named := func(why string) (*a2a.Part, error) {
		return a2a.NewTextPart(fmt.Sprintf("%s (%s, %s) is %s", ref.Name, ref.Type, ref.Blob, why)), nil
	}
	const tooLarge = "too large to be sent"
	if ref.Size > *room || *room <= 0 {
		return named(tooLarge)
	}
	data, err := g.Runtime.Blob(ctx, x, ref)
	switch {
	case errors.Is(err, gateway.ErrUnknown):
		return named("not there")
	case err != nil:
		return nil, err
	case int64(len(data)) > *room:
		return named(tooLarge)
	}
	*room -= int64(len(data))
	part := a2a.NewRawPart(data)
	part.Filename, part.MediaType = ref.Name, ref.Type
	return part, nil
}
