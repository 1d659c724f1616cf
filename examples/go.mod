module skep/examples

go 1.24

require skep/sdk/go v0.0.0

replace skep/sdk/go => ../sdk/go
