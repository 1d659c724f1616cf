package acptest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Fault is the body of an ERROR of the host. Retry and Details are in JSON only.
type Fault struct {
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Retry   *bool          `json:"retry"`
	Details map[string]any `json:"details,omitempty"`
}

// faultCodes are the codes of host/docs/gateway-acp.md.
var faultCodes = []string{"malformed", "unsupported_version", "unknown_receiver", "forbidden", "duplicate", "timeout", "busy", "internal"}

// ParseFault reads the body of an ERROR: where its content is JSON an object with code,
// message and retry, where it is text "CODE: MESSAGE".
func ParseFault(m Message) (f Fault, err error) {
	switch m.Header.ContentType {
	case "application/json":
		d := json.NewDecoder(bytes.NewReader([]byte(m.Body)))
		d.DisallowUnknownFields()
		if err := d.Decode(&f); err != nil {
			return f, fmt.Errorf("the body of the ERROR is %q: %w", m.Body, err)
		}
		if d.More() || f.Retry == nil {
			return f, fmt.Errorf("the body of the ERROR is %q", m.Body)
		}
	case "text/plain":
		f.Code, f.Message, _ = strings.Cut(m.Body, ": ")
	default:
		return f, fmt.Errorf("the content of the ERROR is %q", m.Header.ContentType)
	}
	if m.Header.Type != "ERROR" || f.Message == "" || !slices.Contains(faultCodes, f.Code) {
		return f, fmt.Errorf("the %s has the body %q", m.Header.Type, m.Body)
	}
	return f, nil
}
