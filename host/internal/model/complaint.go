package model

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"skep/host/internal/egress"
)

// complaint is what the providers say of a call that failed. Servers that are
// compatible with one leave out parts of it, or write a number for a word.
type complaint struct {
	message string
	words   []string // type and code
}

// readComplaint reads {"error": {"message", "type", "code"}} and what servers
// make of it. Of anything else it takes the text.
func readComplaint(raw []byte) complaint {
	var outer struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(raw, &outer) != nil {
		return complaint{message: string(raw)}
	}
	var inner struct {
		Message string          `json:"message"`
		Type    json.RawMessage `json:"type"`
		Code    json.RawMessage `json:"code"`
	}
	var text string
	switch {
	case json.Unmarshal(outer.Error, &inner) == nil && len(outer.Error) > 0:
		return complaint{message: inner.Message, words: []string{word(inner.Type), word(inner.Code)}}
	case json.Unmarshal(outer.Error, &text) == nil:
		return complaint{message: text}
	case outer.Message != "":
		return complaint{message: outer.Message}
	}
	return complaint{message: word(outer.Detail)}
}

func word(raw json.RawMessage) string { return strings.Trim(string(raw), `"`) }

func (c complaint) says(words ...string) bool {
	return slices.ContainsFunc(c.words, func(w string) bool { return slices.Contains(words, w) })
}

// fault sorts a complaint by its words first: in the middle of a stream they come
// without a status. Secrets go before the text is cut, which could leave a part.
func (c complaint) fault(status int, key bool, scrub egress.Scrubber) *Error {
	kind, text := c.sort(status)
	switch {
	case kind == Auth && !key:
		text = "the provider wants a key; set api_key"
	case kind == Auth && status == http.StatusUnauthorized:
		text = "the provider refuses the key; mend api_key"
	}
	if c.message != "" {
		text += ": " + c.message
	}
	return &Error{Kind: kind, Status: status, Message: quote(scrub.Text(text))}
}

func (c complaint) sort(status int) (Kind, string) {
	long := strings.ToLower(c.message)
	switch {
	case c.says("insufficient_quota", "billing_error"):
		return Auth, "the account with the provider is used up"
	case c.says("rate_limit_error", "rate_limit_exceeded") || status == http.StatusTooManyRequests:
		return RateLimited, "the provider takes no more for now"
	case c.says("overloaded_error", "server_overloaded") || status == 529 || status == http.StatusServiceUnavailable:
		return Overloaded, "the provider has too much to do"
	case c.says("authentication_error", "permission_error", "invalid_api_key"),
		status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusPaymentRequired:
		return Auth, "the provider does not let this host in"
	case c.says("context_length_exceeded", "string_above_max_length") || status == http.StatusRequestEntityTooLarge,
		strings.Contains(long, "prompt is too long"), strings.Contains(long, "context length"), strings.Contains(long, "context window"):
		return TooLong, "the conversation is too long for the model"
	case c.says("not_found_error", "model_not_found") || status == http.StatusNotFound:
		return Auth, "the provider knows no such model or address; mend model or base_url"
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status >= 500,
		c.says("api_error", "server_error", "internal_server_error", "timeout_error"):
		return Unavailable, "the provider failed"
	}
	return Refused, "the provider refuses the request"
}
