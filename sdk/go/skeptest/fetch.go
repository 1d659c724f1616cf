package skeptest

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	skep "skep/sdk/go"
	"skep/sdk/go/internal/abi"
)

// Bounds of HTTP, as a host has them.
const (
	maxHTTPBody = 8 << 20
	maxRequest  = 2 << 20
	// largestRequest is of blob.put.
	largestRequest = 4 << 20
)

func (h *host) fetch(req json.RawMessage) (any, error) {
	var ask abi.FetchRequest
	if err := strict(req, &ask); err != nil {
		return nil, err
	}
	if err := checkFetch(ask); err != nil {
		return nil, err
	}
	if h.world.HTTP == nil {
		return nil, because(skep.Denied, "grant", "%s is not granted to agent %q; set World.HTTP", ask.URL, h.in.Agent)
	}
	var r skep.FetchRequest
	if err := json.Unmarshal(req, &r); err != nil {
		return nil, err
	}
	rsp, err := h.world.HTTP(r)
	if err != nil {
		return nil, err
	}
	if len(rsp.Body) > maxHTTPBody {
		return nil, because(skep.Limit, "response_bytes", "the answer has more than %d bytes", maxHTTPBody)
	}
	headers := map[string]string{}
	for name, value := range rsp.Headers {
		headers[strings.ToLower(name)] = value
	}
	rsp.Headers = headers
	return rsp, nil
}

// checkFetch refuses what a host refuses before it asks anybody.
func checkFetch(ask abi.FetchRequest) error {
	methods := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
	u, err := url.Parse(ask.URL)
	switch {
	case !slices.Contains(methods, ask.Method):
		return because(skep.Invalid, "request", "the method %.40q is none of %s", ask.Method, strings.Join(methods, ", "))
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return because(skep.Invalid, "request", "%.200q is no absolute URL of http or https", ask.URL)
	case ask.Body != "" && len(ask.BodyBase64) > 0:
		return because(skep.Invalid, "request", "body and body_base64 are both set")
	case len(ask.Body)+len(ask.BodyBase64) > maxHTTPBody:
		return because(skep.Limit, "request_bytes", "the body has more than %d bytes", maxHTTPBody)
	}
	return nil
}

func (h *host) secretExists(req json.RawMessage) (any, error) {
	var ask abi.SecretRequest
	if err := strict(req, &ask); err != nil {
		return nil, err
	}
	return abi.SecretResponse{Exists: slices.Contains(h.world.Secrets, ask.Name)}, nil
}
