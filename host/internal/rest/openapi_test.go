package rest_test

func undocumented() []string { return nil }
