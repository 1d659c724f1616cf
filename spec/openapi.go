package spec

import (
	_ "embed"
	"slices"
)

//go:generate go run ./openapi/generate .

var (
	//go:embed openapi.yaml
	openAPI []byte
	//go:embed openapi.json
	openAPIJSON []byte
	//go:embed openapi.html
	openAPIPage []byte
)

// OpenAPI returns a copy of the description of a host's HTTP interface, YAML of
// OpenAPI 3.1.
func OpenAPI() []byte { return slices.Clone(openAPI) }

// OpenAPIJSON returns a copy of the same as JSON.
func OpenAPIJSON() []byte { return slices.Clone(openAPIJSON) }

// OpenAPIPage returns a copy of the same for people, one HTML page without
// scripts that loads nothing.
func OpenAPIPage() []byte { return slices.Clone(openAPIPage) }
