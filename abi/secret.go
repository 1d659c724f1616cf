package abi

// SecretRequest is the request of op secret.exists.
type SecretRequest struct {
	Name string `json:"name"`
}

// SecretResponse is the answer of op secret.exists. Exists: the host adds
// the secret to the agent's requests to its hosts.
type SecretResponse struct {
	Exists bool `json:"exists"`
}
