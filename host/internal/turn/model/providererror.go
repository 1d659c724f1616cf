package model

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"skep/host/internal/turn/egress"
)

// providerError is the error body of a provider. Compatible servers omit parts of it, or
// send a number as code.
type providerError struct {
	message string
	codes   []string // type and code
}

// parseProviderError reads {"error": {"message", "type", "code"}} and its variants. Any
// other body is taken as the message.
func parseProviderError(raw []byte) providerError {
	var outer struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(raw, &outer) != nil {
		return providerError{message: string(raw)}
	}
	var inner struct {
		Message string          `json:"message"`
		Type    json.RawMessage `json:"type"`
		Code    json.RawMessage `json:"code"`
	}
	var text string
	switch {
	case json.Unmarshal(outer.Error, &inner) == nil && len(outer.Error) > 0:
		return providerError{message: inner.Message, codes: []string{unquoted(inner.Type), unquoted(inner.Code)}}
	case json.Unmarshal(outer.Error, &text) == nil:
		return providerError{message: text}
	case outer.Message != "":
		return providerError{message: outer.Message}
	}
	return providerError{message: unquoted(outer.Detail)}
}

func unquoted(raw json.RawMessage) string { return strings.Trim(string(raw), `"`) }

func (c providerError) hasCode(words ...string) bool {
	return slices.ContainsFunc(c.codes, func(w string) bool { return slices.Contains(words, w) })
}

// toError classifies an error by its codes first: in the middle of a stream it has no
// status. Secrets are scrubbed before the text is cut, because a cut secret is not found.
func (c providerError) toError(status int, key bool, scrub *egress.Scrubber) *Error {
	kind, text := c.classify(status)
	short := ""
	switch {
	case text == usedUp, text == notFound:
		short, _, _ = strings.Cut(text, ";")
	case kind == Auth && !key:
		text = "the provider wants a key; set api_key"
	case kind == Auth && status == http.StatusUnauthorized:
		text = "the provider refuses the key; mend api_key"
	}
	if c.message != "" {
		text += ": " + c.message
	}
	return &Error{Kind: kind, Status: status, Message: quote(scrub.Text(text)), Short: short}
}

// Failures of kind [Auth] that no other key mends.
const (
	usedUp   = "the account with the provider is used up"
	notFound = "the provider knows no such model or address; mend model or base_url"
)

func (c providerError) classify(status int) (Kind, string) {
	long := strings.ToLower(c.message)
	switch {
	case c.hasCode("insufficient_quota", "billing_error"):
		return Auth, usedUp
	case c.hasCode("rate_limit_error", "rate_limit_exceeded") || status == http.StatusTooManyRequests:
		return RateLimited, "the provider takes no more for now"
	case c.hasCode("overloaded_error", "server_overloaded") || status == 529 || status == http.StatusServiceUnavailable:
		return Overloaded, "the provider has too much to do"
	case c.hasCode("authentication_error", "permission_error", "invalid_api_key"),
		status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusPaymentRequired:
		return Auth, "the provider does not let this host in"
	case c.hasCode("context_length_exceeded", "string_above_max_length") || status == http.StatusRequestEntityTooLarge,
		strings.Contains(long, "prompt is too long"), strings.Contains(long, "context length"), strings.Contains(long, "context window"):
		return TooLong, "the conversation is too long for the model"
	case c.hasCode("not_found_error", "model_not_found") || status == http.StatusNotFound:
		return Auth, notFound
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status >= 500,
		c.hasCode("api_error", "server_error", "internal_server_error", "timeout_error"):
		return Unavailable, "the provider failed"
	}
	return Refused, "the provider refuses the request"
}
