package envelope

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gowebpki/jcs"
)

// Member is the name of the signature in a wrapper's metadata.
const Member = "skep_signature"

// Way is where a wrapper goes.
type Way struct {
	// Back says that it goes by the route for tasks that the target works on
	// already.
	Back bool
	// Target is the swarm that gets it.
	Target string
}

func (w Way) direction() string {
	if w.Back {
		return "back"
	}
	return "forward"
}

// open takes a wrapper apart: what is signed of it, and the signature that it
// bears, empty for none. The wrapper is one JSON object.
func open(wrapper []byte, way Way) (signed []byte, signature string, err error) {
	// Twice canonical: a second member of the same name must not be dropped
	// before somebody has seen it.
	wrapper, err = jcs.Transform(wrapper)
	if err != nil {
		return nil, "", fmt.Errorf("the wrapper is not JSON that can be signed: %w", err)
	}
	var members, metadata map[string]json.RawMessage
	if err := json.Unmarshal(wrapper, &members); err != nil || members == nil {
		return nil, "", errors.New("the wrapper is no object")
	}
	if err := json.Unmarshal(orEmpty(members["metadata"]), &metadata); err != nil || metadata == nil {
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

// orEmpty takes metadata that is missing, or null, for none.
func orEmpty(metadata json.RawMessage) json.RawMessage {
	if len(metadata) == 0 || string(metadata) == "null" {
		return json.RawMessage("{}")
	}
	return metadata
}
