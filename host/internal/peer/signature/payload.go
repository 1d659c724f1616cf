package signature

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gowebpki/jcs"
)

// Member is the name of the signature in a wrapper's metadata.
const Member = "skep_signature"

// Route is the destination of a wrapper.
type Route struct {
	// Back is set for the route of tasks that the target already works on.
	Back bool
	// Target is the receiving swarm.
	Target string
}

func (w Route) direction() string {
	if w.Back {
		return "back"
	}
	return "forward"
}

// signedPayload returns the signed bytes of a wrapper and its signature, empty
// for none. The wrapper is one JSON object.
func signedPayload(wrapper []byte, way Route) (signed []byte, signature string, err error) {
	// Canonicalized twice: this pass refuses duplicate members before Unmarshal
	// would drop them.
	wrapper, err = jcs.Transform(wrapper)
	if err != nil {
		return nil, "", fmt.Errorf("the wrapper is not JSON that can be signed: %w", err)
	}
	var members, metadata map[string]json.RawMessage
	if err := json.Unmarshal(wrapper, &members); err != nil || members == nil {
		return nil, "", errors.New("the wrapper is no object")
	}
	if err := json.Unmarshal(metadataOrEmpty(members["metadata"]), &metadata); err != nil || metadata == nil {
		return nil, "", errors.New("the wrapper's metadata is no object")
	}
	if raw, ok := metadata[Member]; ok && json.Unmarshal(raw, &signature) != nil {
		return nil, "", fmt.Errorf("metadata.%s is no string", Member)
	}
	delete(metadata, Member)
	delete(members, "auth_token")
	if members["metadata"], err = json.Marshal(metadata); err != nil {
		return nil, "", err
	}
	text, err := json.Marshal(struct {
		Direction string                     `json:"direction"`
		Target    string                     `json:"target"`
		Wrapper   map[string]json.RawMessage `json:"wrapper"`
	}{way.direction(), way.Target, members})
	if err != nil {
		return nil, "", err
	}
	signed, err = jcs.Transform(text)
	return signed, signature, err
}

// metadataOrEmpty returns an empty object for missing or null metadata.
func metadataOrEmpty(metadata json.RawMessage) json.RawMessage {
	if len(metadata) == 0 || string(metadata) == "null" {
		return json.RawMessage("{}")
	}
	return metadata
}
