package abi

// FetchRequest is the request of op http.fetch.
type FetchRequest struct {
	// Method is one of GET, HEAD, POST, PUT, PATCH, DELETE and OPTIONS.
	Method string `json:"method"`
	// URL is absolute, http or https, without credentials. A fragment is not
	// sent.
	URL string `json:"url"`
	// Headers are sent as they are, one value each.
	Headers map[string]string `json:"headers,omitempty"`
	// Body is a body of text. At most one of Body and BodyBase64 is set.
	Body string `json:"body,omitempty"`
	// BodyBase64 is a body of bytes, base64 with padding in JSON.
	BodyBase64 []byte `json:"body_base64,omitempty"`
}

// FetchResponse is the answer of op http.fetch. Any status is an answer, also
// 404 and 500. It is whole: one that is too large is an error, never cut.
type FetchResponse struct {
	Status int `json:"status"`
	// Headers have lower-case names. Several values of one name are joined
	// with ", ", set-cookie with a line feed.
	Headers map[string]string `json:"headers"`
	// Body is the body when it is valid UTF-8, else "".
	Body string `json:"body"`
	// BodyBase64 is a body that is not UTF-8, base64 with padding in JSON.
	BodyBase64 []byte `json:"body_base64,omitempty"`
}
