  private val maxText = 1048576 // bytes
  private val maxNesting = 64

  /** Why a text is no message. */
  private class Refusal(reason: String) extends java.lang.RuntimeException(reason)

  private def fail(at: String, reason: String): Nothing = throw new Refusal(at + ": " + reason)
  private def refuse(reason: String): Nothing = throw new Refusal("the text " + reason)

  private sealed trait Value
  private case class Text(text: String) extends Value
  private case class Numeral(text: String) extends Value
  private case class Word(text: String) extends Value
  private case class Items(all: Vector[Value]) extends Value
  private case class Members(all: Vector[(String, Value)]) extends Value {
    private lazy val index = all.toMap
    def get(name: String): scala.Option[Value] = if (all.length < 16) all.find(_._1 == name).map(_._2) else index.get(name)
  }

  private type Read[T] = (Value, String) => T
  private type Write[T] = (Writer, T, String) => scala.Unit

  private def paired(text: String): Boolean = {
    var i = 0
    while (i < text.length) {
      val c = text.charAt(i)
      if (java.lang.Character.isHighSurrogate(c) && i + 1 < text.length && java.lang.Character.isLowSurrogate(text.charAt(i + 1))) i += 1
      else if (java.lang.Character.isSurrogate(c)) return false
      i += 1
    }
    true
  }

  private def checkSize(text: String): scala.Unit = {
    var n = text.length.toLong
    var i = 0
    while (i < text.length) {
      val c = text.charAt(i)
      if (c >= 0x80) n += (if (c < 0x800 || java.lang.Character.isSurrogate(c)) 1 else 2)
      i += 1
    }
    if (n > maxText) refuse("has more than 1048576 bytes")
  }

  private def utf8(text: scala.Array[scala.Byte]): String = {
    if (text.length > maxText) refuse("has more than 1048576 bytes")
    try java.nio.charset.StandardCharsets.UTF_8.newDecoder().decode(java.nio.ByteBuffer.wrap(text)).toString
    catch { case _: java.nio.charset.CharacterCodingException => refuse("is not UTF-8") }
  }

  private def parseText(text: String): Value = {
    checkSize(text)
    if (!paired(text)) refuse("has an unpaired surrogate")
    new Parser(text).all()
  }

  private class Parser(text: String) {
    private var at = 0
    private var depth = 0

    def all(): Value = {
      space()
      val v = value()
      space()
      if (at < text.length) refuse("is no JSON")
      v
    }

    private def peek: Int = if (at < text.length) text.charAt(at).toInt else -1

    private def take(c: scala.Char): Boolean = {
      val found = peek == c.toInt
      if (found) at += 1
      found
    }

    private def want(c: scala.Char): scala.Unit = if (!take(c)) refuse("is no JSON")

    private def space(): scala.Unit = while (peek == ' ' || peek == '\t' || peek == '\n' || peek == '\r') at += 1

    private def value(): Value = peek match {
      case '{' | '[' =>
        depth += 1
        if (depth > maxNesting) refuse("is nested deeper than 64")
        val v = if (peek == '{') members() else items()
        depth -= 1
        v
      case '"' => Text(string())
      case 't' => word("true")
      case 'f' => word("false")
      case 'n' => word("null")
      case _ => numeral()
    }

    private def word(word: String): Value = {
      if (!text.startsWith(word, at)) refuse("is no JSON")
      at += word.length
      Word(word)
    }

    private def numeral(): Value = {
      val begin = at
      take('-')
      if (!take('0')) digits()
      if (take('.')) digits()
      if (take('e') || take('E')) {
        if (!take('+')) take('-')
        digits()
      }
      Numeral(text.substring(begin, at))
    }

    private def digits(): scala.Unit = {
      val begin = at
      while (peek >= '0' && peek <= '9') at += 1
      if (at == begin) refuse("is no JSON")
    }

    private def items(): Value = {
      val all = scala.Vector.newBuilder[Value]
      want('[')
      space()
      if (take(']')) return Items(all.result())
      while (true) {
        space()
        all += value()
        space()
        if (take(']')) return Items(all.result())
        want(',')
      }
      Items(all.result())
    }

    private def members(): Value = {
      val all = scala.Vector.newBuilder[(String, Value)]
      val names = new java.util.HashSet[String]
      want('{')
      space()
      if (take('}')) return Members(all.result())
      while (true) {
        space()
        if (peek != '"') refuse("is no JSON")
        val name = string()
        if (!names.add(name)) refuse("has a member twice")
        space()
        want(':')
        space()
        all += ((name, value()))
        space()
        if (take('}')) return Members(all.result())
        want(',')
      }
      Members(all.result())
    }

    private def string(): String = {
      val out = new java.lang.StringBuilder
      want('"')
      while (true) {
        val c = peek
        if (c < ' ') refuse("is no JSON")
        at += 1
        if (c == '"') return out.toString
        if (c == '\\') escape(out) else out.append(c.toChar)
      }
      out.toString
    }

    private def escape(out: java.lang.StringBuilder): scala.Unit = {
      val c = peek
      at += 1
      val i = "\"\\/bfnrt".indexOf(c)
      if (i >= 0) out.append("\"\\/\b\f\n\r\t".charAt(i))
      else if (c != 'u') refuse("is no JSON")
      else {
        val unit = hex()
        out.append(unit)
        if (java.lang.Character.isSurrogate(unit)) {
          if (java.lang.Character.isLowSurrogate(unit) || !take('\\') || !take('u')) refuse("has an unpaired surrogate")
          val low = hex()
          if (!java.lang.Character.isLowSurrogate(low)) refuse("has an unpaired surrogate")
          out.append(low)
        }
      }
    }

    private def hex(): scala.Char = {
      var n = 0
      for (_ <- 0 until 4) {
        val digit = "0123456789abcdef".indexOf(if (peek >= 'A' && peek <= 'F') peek + 32 else peek)
        if (digit < 0) refuse("is no JSON")
        n = n * 16 + digit
        at += 1
      }
      n.toChar
    }
  }

  private def readObject(v: Value, at: String): Members = v match {
    case m: Members => m
    case _ => fail(at, "is no object")
  }

  private def field[T](o: Members, name: String, at: String, read: Read[T]): T =
    o.get(name) match {
      case scala.Some(v) => read(v, at + "." + name)
      case scala.None => fail(at + "." + name, "is missing")
    }

  private def optional[T](o: Members, name: String, at: String, read: Read[T]): scala.Option[T] =
    o.get(name).filter(_ != Word("null")).map(read(_, at + "." + name))

  /** The members that are not declared, each with its text. */
  private def others(o: Members, declared: String => Boolean): Map[String, String] =
    o.all.filterNot(m => declared(m._1)).map { m =>
      val w = new Writer
      writeValue(w, m._2)
      (m._1, w.out.toString)
    }.toMap

  private def noOthers(o: Members, at: String, declared: String => Boolean): scala.Unit =
    o.all.find(m => !declared(m._1)).foreach(m => fail(at + "[" + quoted(m._1) + "]", "is not declared"))

  private def readString(v: Value, at: String): String = v match {
    case Text(text) => text
    case _ => fail(at, "is no string")
  }

  private def readBoolean(v: Value, at: String): Boolean = v match {
    case Word("true") => true
    case Word("false") => false
    case _ => fail(at, "is neither true nor false")
  }

  private def digitsOf(v: Value): String = v match {
    case Numeral(text) => text
    case _ => ""
  }

  private def readInt(v: Value, at: String): Int =
    try java.lang.Integer.parseInt(digitsOf(v))
    catch { case _: java.lang.NumberFormatException => fail(at, "is no whole number of 32 bits") }

  private def readLong(v: Value, at: String): Long =
    try java.lang.Long.parseLong(digitsOf(v))
    catch { case _: java.lang.NumberFormatException => fail(at, "is no whole number of 64 bits") }

  private def readFloat(v: Value, at: String): scala.Double = v match {
    case Numeral(text) if !java.lang.Double.isInfinite(java.lang.Double.parseDouble(text)) => java.lang.Double.parseDouble(text)
    case _ => fail(at, "is no number of 64 bits")
  }

  private def readBytes(v: Value, at: String): scala.Array[scala.Byte] = {
    val text = readStringOr(v)
    try {
      val raw = java.util.Base64.getDecoder.decode(text)
      if (java.util.Base64.getEncoder.encodeToString(raw) == text) return raw
    } catch { case _: java.lang.IllegalArgumentException => }
    fail(at, "is no base64")
  }

  private def readStringOr(v: Value): String = v match {
    case Text(text) => text
    case _ => "?"
  }

  private def readList[T](read: Read[T]): Read[List[T]] = (v, at) => v match {
    case Items(all) => all.zipWithIndex.map { case (item, i) => read(item, at + "[" + i + "]") }.toList
    case _ => fail(at, "is no list")
  }

  private def readMap[T](read: Read[T]): Read[Map[String, T]] = (v, at) =>
    readObject(v, at).all.map { case (name, part) => (name, read(part, at + "[" + quoted(name) + "]")) }.toMap

  private class Writer {
    val out = new java.lang.StringBuilder
    private var depth = 0

    def open(c: scala.Char): scala.Unit = {
      depth += 1
      if (depth > maxNesting) refuse("is nested deeper than 64")
      out.append(c)
    }

    def close(c: scala.Char): scala.Unit = {
      depth -= 1
      out.append(c)
    }

    def comma(): scala.Unit = {
      val last = out.charAt(out.length - 1)
      if (last != '{' && last != '[') out.append(',')
    }

    def name(name: String): scala.Unit = {
      comma()
      out.append(quoted(name)).append(':')
    }
  }

  private def encode[T](t: T, at: String, write: Write[T]): scala.Either[String, String] = attempt {
    val w = new Writer
    write(w, t, at)
    val text = w.out.toString
    checkSize(text)
    text
  }

  private def attempt[T](part: => T): scala.Either[String, T] =
    try scala.Right(part)
    catch { case e: Refusal => scala.Left(e.getMessage) }

  private def quoted(text: String): String = {
    val out = new java.lang.StringBuilder("\"")
    for (c <- text) {
      val simple = "\"\\\b\f\n\r\t".indexOf(c.toInt)
      if (simple >= 0) out.append('\\').append("\"\\bfnrt".charAt(simple))
      else if (c < ' ') out.append("\\u00").append(if (c < 16) "0" else "").append(java.lang.Integer.toHexString(c.toInt))
      else out.append(c)
    }
    out.append('"').toString
  }

  private def writeField[T](w: Writer, name: String, t: T, at: String, write: Write[T]): scala.Unit = {
    w.name(name)
    write(w, t, at + "." + name)
  }

  private def writeOptional[T](w: Writer, name: String, t: scala.Option[T], at: String, write: Write[T]): scala.Unit =
    t.foreach(writeField(w, name, _, at, write))

  private def writeOthers(w: Writer, extra: Map[String, String], at: String, declared: String => Boolean): scala.Unit =
    for ((name, text) <- extra) {
      val place = at + "[" + quoted(name) + "]"
      if (declared(name)) fail(place, "is declared and cannot be there twice")
      checkPaired(name, place)
      w.name(name)
      writeValue(w, parseText(text))
    }

  private def writeValue(w: Writer, v: Value): scala.Unit = v match {
    case Text(text) => w.out.append(quoted(text))
    case Numeral(text) => w.out.append(text)
    case Word(text) => w.out.append(text)
    case Items(all) =>
      w.open('[')
      for (item <- all) {
        w.comma()
        writeValue(w, item)
      }
      w.close(']')
    case Members(all) =>
      w.open('{')
      for ((name, part) <- all) {
        w.name(name)
        writeValue(w, part)
      }
      w.close('}')
  }

  private def checkPaired(text: String, at: String): scala.Unit = if (!paired(text)) fail(at, "has an unpaired surrogate")

  private def writeString(w: Writer, t: String, at: String): scala.Unit = {
    checkPaired(t, at)
    w.out.append(quoted(t))
  }

  private def writeBoolean(w: Writer, t: Boolean, at: String): scala.Unit = w.out.append(t)
  private def writeInt(w: Writer, t: Int, at: String): scala.Unit = w.out.append(t)
  private def writeLong(w: Writer, t: Long, at: String): scala.Unit = w.out.append(t)

  private def writeFloat(w: Writer, t: scala.Double, at: String): scala.Unit = {
    if (java.lang.Double.isNaN(t) || java.lang.Double.isInfinite(t)) fail(at, "is no number of 64 bits")
    w.out.append(t)
  }

  private def writeBytes(w: Writer, t: scala.Array[scala.Byte], at: String): scala.Unit =
    w.out.append('"').append(java.util.Base64.getEncoder.encodeToString(t)).append('"')

  private def writeList[T](write: Write[T]): Write[List[T]] = (w, all, at) => {
    w.open('[')
    for ((item, i) <- all.zipWithIndex) {
      w.comma()
      write(w, item, at + "[" + i + "]")
    }
    w.close(']')
  }

  private def writeMap[T](write: Write[T]): Write[Map[String, T]] = (w, all, at) => {
    w.open('{')
    for ((name, part) <- all) {
      val place = at + "[" + quoted(name) + "]"
      checkPaired(name, place)
      w.name(name)
      write(w, part, place)
    }
    w.close('}')
  }
