package door

import (
	"crypto/sha256"
	"encoding/json"
	"maps"

	"skep/host/internal/gateway"
	"skep/host/internal/swarm"
)

// maxInfo bounds the routing_info of a message, in bytes.
const maxInfo = 64 << 10

// routingInfo is what an agent sees of a message besides its text: the gateway's data, and
// the blobs in which its parts are, the first ones of a list (G-040, G-041).
func routingInfo(a gateway.Ask, blobs []swarm.Blob) (json.RawMessage, error) {
	if len(a.Info) == 0 && len(a.Parts) == 0 {
		return nil, nil
	}
	info := map[string]any{}
	maps.Copy(info, a.Info)
	var parts []map[string]any
	for i, p := range a.Parts {
		parts = append(parts, map[string]any{"name": p.Name, "type": p.Type, "size": len(p.Data), "sha256": blobs[i].ID.String()})
	}
	if len(parts) > 0 {
		info["parts"] = parts
	}
	raw, err := json.Marshal(map[string]any{"gateway": info})
	switch {
	case err != nil:
		return nil, invalid("the message's data is no JSON: %v", err)
	case len(raw) > maxInfo:
		return nil, invalid("the message's data have %d bytes beside its text, at most %d", len(raw), maxInfo)
	}
	return raw, nil
}

// blobs are the blobs that a message brings, its parts before its text.
func (d *Door) blobs(a gateway.Ask) (list []swarm.Blob) {
	add := func(data []byte) {
		list = append(list, swarm.Blob{ID: sha256.Sum256(data), Data: data})
	}
	for _, p := range a.Parts {
		add(p.Data)
	}
	if d.opt.KeepRaw && len(a.Raw) > 0 {
		add(a.Raw)
	}
	return list
}

// results are the results of calls, as a user sends them.
func results(a gateway.Ask) *swarm.Results {
	r := &swarm.Results{}
	for _, one := range a.Results {
		r.Each = append(r.Each, swarm.CallResult{Call: one.Call, Content: one.Content, Missing: one.Error})
	}
	return r
}

// wireResult is the result of a call, as another swarm sends it.
type wireResult struct {
	Call    string  `json:"call_id"`
	Content *string `json:"content,omitempty"`
}

func wireResults(a gateway.Ask) (list []wireResult) {
	for _, one := range a.Results {
		r := wireResult{Call: one.Call}
		if !one.Error {
			r.Content = &one.Content
		}
		list = append(list, r)
	}
	return list
}
