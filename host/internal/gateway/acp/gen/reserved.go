package gen

// Words that a generated name cannot be, by language and place. A name that is one of
// them gets an underscore at its end, in Scala a keyword stands in backquotes.
const (
	// goMembers are the methods of generated records.
	goMembers = "MarshalJSON UnmarshalJSON Validate"

	scalaKeywords = `abstract case catch class def do else enum export extends false final finally for forSome given if
		implicit import lazy macro match new null object override package private protected return sealed super then this
		throw trait try true type val var while with yield`
	// scalaMembers are the members of every case class.
	scalaMembers = `asInstanceOf canEqual clone copy eq equals extra finalize getClass hashCode isInstanceOf ne notify
		notifyAll productArity productElement productElementName productElementNames productIterator productPrefix
		synchronized toString wait withExtra`
	// scalaTypes are those that the generated code uses.
	scalaTypes = `Any AnyRef AnyVal App Array Boolean Byte Char Double Either Exception Float Int Integer Items Iterable Left
		List Long Map Members Messages Nil None Nothing Null Numeral Object Option Parser Predef Product Read Refusal Right
		Seq Serializable Set Short Some String StringBuilder Text Throwable Unit Value Vector Word Write Writer`

	javaKeywords = `abstract assert boolean break byte case catch char class const continue default do double else enum
		extends false final finally float for goto if implements import instanceof int interface long native new null
		package private protected public record return sealed short static strictfp super switch synchronized this throw
		throws transient true try var void volatile when while yield`
	// javaMembers are methods of every record, and those that generated ones have.
	javaMembers = "clone decode encode equals extra finalize getClass hashCode notify notifyAll toString validate wait"
	javaTypes   = `Boolean Character Double Enum Exception Expected IllegalArgumentException Integer Known Long MessageError
		Messages NumberFormatException Numeral Object Override Parser Read Record RuntimeException String StringBuilder
		SuppressWarnings System Throwable Void Write Writer`

	pythonKeywords = `False None True and as assert async await break case class continue def del elif else except
		finally for from global if import in is lambda match nonlocal not or pass raise return try type while with yield`
	// pythonMembers are the types that annotations name.
	pythonMembers = "bool bytes dict extra float int list str"
	// pythonValues are names that a member of an enum cannot have.
	pythonValues = "mro name value"
	pythonTypes  = "Exception MessageError UnicodeError ValueError"

	rustKeywords = `Self abstract as async await become box break const continue crate do dyn else enum extern false final
		fn for gen if impl in let loop macro match mod move mut override priv pub ref return self static struct super trait
		true try type typeof union unsafe unsized use virtual where while yield`
	// rustTypes are those that the generated code uses, and the traits whose methods it calls.
	rustTypes = `AsRef BTreeMap Box Bytes Clone Default DoubleEndedIterator Err Extend Fn FnMut FnOnce From Into IntoIterator
		Iterator Members MessageError None Ok Option Parser PartialEq Place Result Sized Some String ToOwned ToString TryFrom TryInto
		Value Vec Wire Writer`

	// typescriptMembers are the members of every object.
	typescriptMembers = "constructor extra hasOwnProperty isPrototypeOf propertyIsEnumerable prototype toLocaleString toString valueOf"
	typescriptTypes   = `Array BigInt Boolean Error Infinity Map Math MessageError NaN Number Numeral Object Parser Promise
		Read ReadonlyArray ReadonlyMap Record RegExp Set String Symbol TextDecoder Uint8Array Value Write Writer`
)
