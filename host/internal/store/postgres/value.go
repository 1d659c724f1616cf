package postgres

import (
	"bytes"
	"database/sql/driver"
	"encoding/binary"
	"fmt"
)

// Numbers of the types that the store has (https://www.postgresql.org/docs/15/catalog-pg-type.html).
const (
	oidBool    = 16
	oidBytea   = 17
	oidName    = 19
	oidInt8    = 20
	oidInt2    = 21
	oidInt4    = 23
	oidText    = 25
	oidVarchar = 1043
)

// encode makes the binary form of an argument, nil for NULL.
func encode(oid uint32, v driver.Value) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case bool:
		if oid == oidBool {
			return []byte{byte(number(v))}, nil
		}
		return encodeNumber(oid, number(v))
	case int64:
		return encodeNumber(oid, v)
	case []byte:
		if v == nil {
			return nil, nil
		}
		return encodeBytes(oid, v)
	case string:
		return encodeBytes(oid, []byte(v))
	}
	return nil, fmt.Errorf("a %T is no argument of this driver", v)
}

func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func encodeNumber(oid uint32, n int64) ([]byte, error) {
	switch oid {
	case oidInt8:
		return binary.BigEndian.AppendUint64(nil, uint64(n)), nil
	case oidInt4:
		return binary.BigEndian.AppendUint32(nil, uint32(n)), nil
	case oidInt2:
		return binary.BigEndian.AppendUint16(nil, uint16(n)), nil
	case oidBytea: // less than every name, see [fromStart]
		return []byte{}, nil
	}
	return nil, fmt.Errorf("the server takes no number for type %d", oid)
}

func encodeBytes(oid uint32, b []byte) ([]byte, error) {
	switch oid {
	case oidBytea, oidText, oidVarchar, oidName:
		return b, nil
	}
	return nil, fmt.Errorf("the server takes no bytes for type %d", oid)
}

// decode reads the binary form of a value. Bytes are copied: the buffers of a connection change
// with its next row.
func decode(oid uint32, b []byte) (driver.Value, error) {
	if b == nil {
		return nil, nil
	}
	switch oid {
	case oidBool:
		return len(b) == 1 && b[0] != 0, nil
	case oidBytea:
		return bytes.Clone(b), nil
	case oidText, oidVarchar, oidName:
		return string(b), nil
	}
	switch {
	case oid == oidInt8 && len(b) == 8:
		return int64(binary.BigEndian.Uint64(b)), nil
	case oid == oidInt4 && len(b) == 4:
		return int64(int32(binary.BigEndian.Uint32(b))), nil
	case oid == oidInt2 && len(b) == 2:
		return int64(int16(binary.BigEndian.Uint16(b))), nil
	}
	return nil, fmt.Errorf("a column has type %d, which the store does not use", oid)
}
