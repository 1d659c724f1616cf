package skep

import (
	"bytes"
	"cmp"
	"encoding/json"
	"unicode/utf8"

	"skep/sdk/go/internal/abi"
)

// FetchRequest is one HTTP request. It encodes as the request of OpHTTPFetch, so
// that [Turn.Submit] takes it as well.
type FetchRequest struct {
	// Method is GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS; empty is GET.
	Method string
	// URL is absolute, http or https.
	URL     string
	Headers map[string]string
	// Body is what the JSON of a request holds, 2 MiB: about 1.5 MiB of bytes that
	// are not text.
	Body []byte
}

// FetchResponse is the answer to a [FetchRequest]. Any status is an answer, also
// 404 and 500. It decodes from the answer of OpHTTPFetch, so that
// [Pending.Answer] fills it as well.
type FetchResponse struct {
	Status int
	// Headers have names in lower case.
	Headers map[string]string
	// Body is whole; one of more than 8 MiB, or what the operator's [limits.http]
	// says, is [Limit].
	Body []byte
}

// Fetch makes an HTTP request and waits for its answer. After 60 s, or what the
// operator's [limits.http] says, it is [Deadline]. It goes where the operator's grants lead, as in
// allow = { http = ["https://api.example.com"] }, else it is [Denied]. The host
// adds the secrets that are bound to the origin. [Unavailable] means that no
// answer came; the request may have arrived.
func (t *Turn) Fetch(r FetchRequest) (FetchResponse, error) {
	var rsp FetchResponse
	err := t.Call(OpHTTPFetch, r, &rsp)
	return rsp, err
}

// SecretExists reports whether the host adds a secret to this agent's requests,
// by the name it has in the operator's file. The agent never sees its value.
func (t *Turn) SecretExists(name string) (bool, error) {
	var rsp abi.SecretResponse
	err := t.Call(OpSecretExists, abi.SecretRequest{Name: name}, &rsp)
	return rsp.Exists, err
}

// MarshalJSON encodes the request of OpHTTPFetch. A body of text stays readable.
func (r FetchRequest) MarshalJSON() ([]byte, error) {
	w := abi.FetchRequest{Method: cmp.Or(r.Method, "GET"), URL: r.URL, Headers: r.Headers}
	w.Body, w.BodyBase64 = split(r.Body)
	return marshal(w)
}

// UnmarshalJSON decodes the request of OpHTTPFetch, for tests.
func (r *FetchRequest) UnmarshalJSON(raw []byte) error {
	var w abi.FetchRequest
	if err := json.Unmarshal(raw, &w); err != nil {
		return err
	}
	*r = FetchRequest{Method: w.Method, URL: w.URL, Headers: w.Headers, Body: join(w.Body, w.BodyBase64)}
	return nil
}

// MarshalJSON encodes the answer of OpHTTPFetch, for tests.
func (r FetchResponse) MarshalJSON() ([]byte, error) {
	w := abi.FetchResponse{Status: r.Status, Headers: r.Headers}
	w.Body, w.BodyBase64 = split(r.Body)
	return marshal(w)
}

// UnmarshalJSON decodes the answer of OpHTTPFetch.
func (r *FetchResponse) UnmarshalJSON(raw []byte) error {
	var w abi.FetchResponse
	if err := json.Unmarshal(raw, &w); err != nil {
		return err
	}
	*r = FetchResponse{Status: w.Status, Headers: w.Headers, Body: join(w.Body, w.BodyBase64)}
	return nil
}

// split puts a body where the contract has it: text, or bytes as base64.
func split(body []byte) (text string, raw []byte) {
	control := func(r rune) bool { return r < ' ' && r != '\t' && r != '\n' && r != '\r' } // six bytes each in JSON
	if utf8.Valid(body) && !bytes.ContainsFunc(body, control) {
		return string(body), nil
	}
	return "", body
}

func join(text string, raw []byte) []byte {
	if len(raw) > 0 {
		return raw
	}
	return []byte(text)
}
