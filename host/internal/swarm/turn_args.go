package swarm

import (
	"bytes"
	"encoding/json"
	"fmt"

	"skep/abi"
	"skep/spec/mail"
)

// Bounds of a call's arguments. Checking must cost the host little whatever a guest
// sends: the schema's validator takes microseconds for every faulty element.
const (
	// maxArgs leaves room for a body of the largest size in any spelling.
	maxArgs = 6*(MaxBody+MaxSubject) + 4<<10
	// maxArgsDepth is far more than any tool needs.
	maxArgsDepth = 16
	// maxTargets bounds the lists in the arguments.
	maxTargets = mail.DefaultRecipients
	// smallArgs go to the schema unchanged, for its better message; larger ones are
	// decoded first.
	smallArgs = 4 << 10
	// maxRefusedArgs bytes of a refused call are kept, maxShownArgs are shown of any
	// call.
	maxRefusedArgs = 4 << 10
	maxShownArgs   = 16 << 10
)

// toolArgs is the union of all tools' parameters.
type toolArgs struct {
	Target  string   `json:"target"`
	Targets []string `json:"targets"`
	Subject string   `json:"subject"`
	Body    string   `json:"body"`
	Note    *string  `json:"note"`
	Reason  *string  `json:"reason"`
	Finish  *string  `json:"finish_message"`
	Summary *bool    `json:"get_summary"`
	Who     bool     `json:"get_identity"`
	Tool    []string `json:"get_tool_help"`
	Full    bool     `json:"get_full_protocol"`
	Swarms  []string `json:"target_swarms"`
	URLs    []string `json:"discovery_urls"`
}

// readArgs checks a call's arguments against the tool's schema and decodes
// them.
func (r *Runtime) readArgs(tool string, raw []byte) (args toolArgs, err error) {
	if len(raw) > maxArgs {
		return args, fmt.Errorf("%d bytes, at most %d", len(raw), maxArgs)
	}
	if abi.Deeper(raw, maxArgsDepth) {
		return args, fmt.Errorf("nested deeper than %d levels", maxArgsDepth)
	}
	if len(raw) <= smallArgs {
		if err := r.mailTools.ToolArgs(tool, raw); err != nil {
			return args, err
		}
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&args); err != nil {
		return args, err
	}
	if max(len(args.Targets), len(args.Tool), len(args.Swarms), len(args.URLs)) > maxTargets {
		return args, fmt.Errorf("a list of more than %d names", maxTargets)
	}
	if len(raw) > smallArgs {
		err = r.mailTools.ToolArgs(tool, raw)
	}
	return args, err
}
