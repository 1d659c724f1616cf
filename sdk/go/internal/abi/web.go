package abi

// FetchRequest is the request of op http.fetch.
type FetchRequest struct {
	Method     string            `json:"method"`
	URL        string            `json:"url"`
	Headers    map[string]string `json:"headers,omitempty"`
	Body       string            `json:"body,omitempty"`
	BodyBase64 []byte            `json:"body_base64,omitempty"`
}

// FetchResponse is the answer of op http.fetch.
type FetchResponse struct {
	Status     int               `json:"status"`
	Headers    map[string]string `json:"headers"`
	Body       string            `json:"body"`
	BodyBase64 []byte            `json:"body_base64,omitempty"`
}

// SecretRequest is the request of op secret.exists.
type SecretRequest struct {
	Name string `json:"name"`
}

// SecretResponse is the answer of op secret.exists.
type SecretResponse struct {
	Exists bool `json:"exists"`
}
