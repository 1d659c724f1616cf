package egress

// Word is a secret that is only looked for: it goes to no host. An empty value is
// never found.
func Word(name, value string) Secret { return Secret{name: name, value: value} }
