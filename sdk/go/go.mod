module skep/sdk/go

go 1.24
