package schema

// For TestReference, which judges by schemas that are not ours.
var (
	Compile = compile
	Decode  = decode
)
