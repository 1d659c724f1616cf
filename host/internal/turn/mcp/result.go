package mcp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"unicode"

	"skep/abi"
)

// maxText bounds a server's text in an error, in bytes.
const maxText = 2 << 10

// result is the result of a tool call (CallToolResult of the protocol).
type result struct {
	Content           []content       `json:"content"`
	StructuredContent json.RawMessage `json:"structuredContent"`
	IsError           bool            `json:"isError"`
	ResultType        string          `json:"resultType"`
}

// content is one part of a result, of any type.
type content struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Data     string `json:"data"`
	MIMEType string `json:"mimeType"`
	URI      string `json:"uri"`
	Name     string `json:"name"`
	Resource *struct {
		URI      string  `json:"uri"`
		MIMEType string  `json:"mimeType"`
		Text     *string `json:"text"`
		Blob     string  `json:"blob"`
	} `json:"resource"`
}

// part describes a part of a result that is not text.
type part struct {
	Type     string  `json:"type"`
	Name     string  `json:"name,omitempty"`
	URI      string  `json:"uri,omitempty"`
	MIMEType string  `json:"mimeType,omitempty"`
	Text     *string `json:"text,omitempty"`
	Bytes    *int    `json:"bytes,omitempty"`
}

// callResult converts the result of a tool for the caller.
func (s *Server) callResult(tool string, raw json.RawMessage) (json.RawMessage, *abi.Error) {
	var r result
	clean := []byte(s.scrub.Text(string(unescapeStrings(raw))))
	if err := json.Unmarshal(clean, &r); err != nil {
		return nil, s.toolFault(abi.CodeUpstream, "malformed", tool, "its answer is no result of a tool")
	}
	text, parts := r.split()
	switch {
	case r.IsError && text == "":
		return nil, s.toolFault(abi.CodeUpstream, "failed", tool, "it failed and does not say why")
	case r.IsError:
		return nil, s.toolFault(abi.CodeUpstream, "failed", tool, "%s", sanitize(text, maxText))
	case r.ResultType != "" && r.ResultType != "complete":
		return nil, s.toolFault(abi.CodeUpstream, "input", tool, "it asks for more input before it answers, which skep does not give")
	case len(r.StructuredContent) > 0 && string(r.StructuredContent) != "null":
		var b bytes.Buffer
		if json.Compact(&b, r.StructuredContent) == nil {
			return b.Bytes(), nil
		}
	}
	var answer any = text
	if len(parts) > 0 {
		answer = struct {
			Text  string `json:"text"`
			Parts []part `json:"parts"`
		}{text, parts}
	}
	out, err := encode(answer)
	if err != nil {
		return nil, s.toolFault(abi.CodeUpstream, "malformed", tool, "its answer cannot be written as JSON")
	}
	return out, nil
}

// unescapeStrings rewrites the strings of a JSON document without needless escapes, so
// that hidden values are found in any spelling. Invalid JSON stays as it is.
func unescapeStrings(raw []byte) []byte {
	if !bytes.Contains(raw, []byte{'\\'}) {
		return raw
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '"' {
			out = append(out, raw[i])
			continue
		}
		end := i + 1
		for ; end < len(raw) && raw[end] != '"'; end++ {
			if raw[end] == '\\' {
				end++
			}
		}
		var text string
		if end >= len(raw) || json.Unmarshal(raw[i:end+1], &text) != nil {
			return raw
		}
		quoted, err := encode(text)
		if err != nil {
			return raw
		}
		out, i = append(out, quoted...), end
	}
	return out
}

func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

// split joins the texts of a result, and describes its other parts.
func (r result) split() (text string, parts []part) {
	var texts []string
	for _, c := range r.Content {
		switch {
		case c.Type == "text":
			texts = append(texts, c.Text)
		case c.Resource != nil:
			p := part{Type: c.Type, URI: c.Resource.URI, MIMEType: c.Resource.MIMEType, Text: c.Resource.Text}
			if p.Text == nil {
				p.Bytes = decodedSize(c.Resource.Blob)
			}
			parts = append(parts, p)
		default:
			p := part{Type: c.Type, Name: c.Name, URI: c.URI, MIMEType: c.MIMEType}
			if c.Data != "" {
				p.Bytes = decodedSize(c.Data)
			}
			parts = append(parts, p)
		}
	}
	return strings.Join(texts, "\n"), parts
}

// decodedSize is the length of base64 data after decoding.
func decodedSize(data string) *int {
	n := base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(data, "=")))
	return &n
}

// sanitize bounds foreign text and removes control characters.
func sanitize(text string, most int) string {
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(text, "\uFFFD"))
}
