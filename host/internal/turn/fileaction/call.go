package fileaction

import (
	"bytes"
	"context"
	"encoding/json"
	"os"

	"skep/abi"
)

// Call is one call of an action.
type Call struct {
	Action string // the name of an action, see [Describe]
	Tenant string
	// Key is the same for each attempt of one call. Retry is set if an earlier attempt may
	// have run.
	Key   string
	Retry bool
	Args  json.RawMessage
}

// args are the arguments of any action.
type args struct {
	Path     string `json:"path"`
	Content  string `json:"content"`
	Encoding string `json:"encoding"`
}

// actionFunc runs an action on a path within a root.
type actionFunc func(d *Directory, ctx context.Context, root *os.Root, c Call, a args) (any, *abi.Error)

// Do runs an action and returns its answer as JSON.
func (d *Directory) Do(ctx context.Context, c Call) (json.RawMessage, *abi.Error) {
	a, fault := parseArgs(c.Args)
	if fault != nil {
		return nil, fault
	}
	do, writes := findAction(c.Action)
	switch {
	case do == nil:
		return nil, fail(abi.CodeUnsupported, "op", "there is no file action %.64q", c.Action)
	case writes && !d.opt.Write:
		return nil, fail(abi.CodeDenied, "write", "%s does not allow to change files; write = true does", d.opt.Table)
	case writes:
		unlock, fault := d.lockTenant(ctx, c.Tenant)
		if fault != nil {
			return nil, fault
		}
		defer unlock()
	}
	root, fault := d.openTenantRoot(c.Tenant, writes)
	if fault != nil {
		return nil, fault
	}
	if root == nil { // the tenant has written nothing yet
		return emptyResult(c, a)
	}
	defer func() { _ = root.Close() }()
	answer, fault := do(d, ctx, root, c, a)
	if fault != nil {
		return nil, fault
	}
	return encode(answer)
}

// findAction returns an action, and whether it changes files.
func findAction(does string) (do actionFunc, writes bool) {
	switch does {
	case "read_file":
		return readFile, false
	case "read_directory":
		return readDirectory, false
	case "write_file":
		return writeFile, true
	case "create_directory":
		return createDirectory, true
	case "delete_file":
		return deleteFile, true
	}
	return nil, false
}

// emptyResult is the answer for a tenant without a directory.
func emptyResult(c Call, a args) (json.RawMessage, *abi.Error) {
	if c.Action == "read_directory" && a.Path == "." {
		return encode("")
	}
	return nil, notFound(a.Path)
}

func parseArgs(raw json.RawMessage) (a args, fault *abi.Error) {
	if err := abi.ReadRequest(raw, &a); err != nil {
		return a, fail(abi.CodeInvalid, "args", "the arguments: %v", err)
	}
	a.Path, fault = cleanPath(a.Path)
	return a, fault
}

// encode encodes an answer as JSON, without HTML escapes.
func encode(v any) (json.RawMessage, *abi.Error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fail(abi.CodeInternal, "encode", "answer: %v", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
