package spec

import (
	_ "embed"
	"slices"
)

//go:embed openapi.yaml
var openAPI []byte

// OpenAPI returns a copy of the description of a host's HTTP interface, YAML of
// OpenAPI 3.1.
func OpenAPI() []byte { return slices.Clone(openAPI) }
