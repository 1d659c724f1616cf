// Command http owns the bundled actions that make one HTTP request each and answer
// with the body. Where they may go is what the operator grants to the action; it
// must not know more than the host tells it.
package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	skep "skep/sdk/go"
)

// Fetcher is the module. It has actions and no agent.
type Fetcher struct{}

var _ = skep.Run(skep.Descriptor{
	Name: "http", Version: "1.0.0",
	Description: "Actions that make HTTP requests.",
	Actions:     actions(),
	Requests:    []skep.Request{{Allow: "http", Reason: "to make the requests that it is asked for"}},
}, Fetcher{})

func main() {}

// names are the actions, those that change nothing first.
var names = []string{"http_get", "http_head", "http_options", "http_post", "http_put", "http_patch", "http_delete"}

// methods maps actions to HTTP methods.
var methods = map[string]string{
	"http_get": "GET", "http_head": "HEAD", "http_options": "OPTIONS", "http_delete": "DELETE",
	"http_post": "POST", "http_put": "PUT", "http_patch": "PATCH",
}

// sends reports whether requests of a method have a body.
// effectOf is read for the methods that are safe (RFC 9110, 9.2.1).
func effectOf(method string) string {
	if sends(method) || method == "DELETE" {
		return "write"
	}
	return "read"
}

func sends(method string) bool { return method == "POST" || method == "PUT" || method == "PATCH" }

func actions() (all []skep.ActionInfo) {
	for _, name := range names {
		method := methods[name]
		properties, required := common, `"url"`
		if sends(method) {
			properties, required = common+`,"body":{"type":"object","description":"what to send, as JSON"}`, `"url","body"`
		}
		all = append(all, skep.ActionInfo{
			Name:        name,
			Description: fmt.Sprintf("Makes an HTTP %s request and answers with the body.", method),
			Parameters:  json.RawMessage(`{"type":"object","properties":{` + properties + `},"required":[` + required + `],"additionalProperties":false}`),
			Idempotent:  !sends(method) || method == "PUT",
			Effect:      effectOf(method),
		})
	}
	return all
}

const common = `"url":{"type":"string","description":"absolute, http or https","minLength":1},` +
	`"headers":{"type":"object","additionalProperties":{"type":"string"}},` +
	`"status":{"type":"boolean","description":"begin the answer with a line that has the status"}`

// Turn refuses: the module has no agent.
func (Fetcher) Turn(*skep.Turn) error {
	return skep.Errorf(skep.Unsupported, "bundled:http has actions and no agent; name it in [actions.http_get] source")
}

// Action makes the request.
func (Fetcher) Action(c *skep.ActionCall) (any, error) {
	method, ok := methods[c.Name]
	if !ok {
		return nil, skep.Errorf(skep.Unsupported, "no action %s", c.Name)
	}
	var args struct {
		URL     string
		Headers map[string]string
		Body    json.RawMessage
		Status  bool
	}
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return nil, skep.Errorf(skep.Invalid, "%v", err)
	}
	req := skep.FetchRequest{Method: method, URL: args.URL, Headers: args.Headers}
	if sends(method) {
		req.Body, req.Headers = args.Body, typed(args.Headers)
	}
	rsp, err := c.Host().Fetch(req)
	if err != nil {
		return nil, err
	}
	text := strings.ToValidUTF8(string(rsp.Body), "\uFFFD")
	if args.Status {
		text = fmt.Sprintf("HTTP %d\n", rsp.Status) + text
	}
	return text, nil
}

// typed sets the body's type, unless the caller does.
func typed(headers map[string]string) map[string]string {
	for name := range headers {
		if strings.EqualFold(name, "Content-Type") {
			return headers
		}
	}
	all := maps.Clone(headers)
	if all == nil {
		all = map[string]string{}
	}
	all["Content-Type"] = "application/json"
	return all
}
