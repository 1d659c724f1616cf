package keyring

// WrapSecret seals something that is no tenant's with a wrapping key. It opens under its name only.
func WrapSecret(kek, plain []byte, name string) ([]byte, error) {
	key, err := newKEK(kek)
	if err != nil {
		return nil, err
	}
	if key == nil {
		return nil, ErrPlain
	}
	return wrap(key, plain, secretName(name))
}

// UnwrapSecret opens what [WrapSecret] has sealed. With another key it is [ErrWrongKEK].
func UnwrapSecret(kek, wrapped []byte, name string) ([]byte, error) {
	key, err := newKEK(kek)
	if err != nil {
		return nil, err
	}
	if key == nil {
		return nil, ErrWrapped
	}
	plain, err := unwrap(key, wrapped, secretName(name))
	if err != nil {
		return nil, ErrWrongKEK
	}
	return plain, nil
}

// secretName keeps a secret from opening as a key or as the check of a keyring.
func secretName(name string) string { return "secret " + name }
