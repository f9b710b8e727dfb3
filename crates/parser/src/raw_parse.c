/*
 * Runs PostgreSQL's raw parser and writes its tree as bytes, which Rust reads (bytes.rs, tree.rs).
 *
 * The format follows the library's own description of its nodes: for each node struct a function
 * that names each field and its kind, as macros. The library defines these macros for protobuf and
 * for JSON. This file defines them for plain bytes in the machine's byte order:
 *
 * - a number, an enumeration or a boolean in its own width;
 * - a text as its length in 4 bytes, then its bytes; no text is as an empty one;
 * - a list or a set as its length in 4 bytes, then its members;
 * - a node as its tag in 2 bytes, then its fields; no node is tag 0;
 * - a field for one kind of node as a byte that says whether it is there, then its fields;
 * - a constant's value as its kind in a byte, from 1, then its field; NULL is kind 0.
 *
 * build.rs numbers the tags (TAG_*) in tags.h.
 */

#include "pg_query.h"
#include "pg_query_internal.h"

#include "postgres.h"
#include "access/relation.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "nodes/plannodes.h"
#include "nodes/value.h"
#include "parser/parser.h"

#include "tags.h"

/* Bytes from malloc: the parser's own allocator stops at 1 GiB. */
typedef struct Bytes
{
	char	   *data;
	size_t		length;
	size_t		capacity;
} Bytes;

/* The outcome of a parse. Its pointers are valid until raw_parse_end. */
typedef struct Outcome
{
	MemoryContext context;
	/* The statements, whole if there is no error. */
	Bytes		tree;
	/* The error's message, or NULL. Detail and hint may be NULL. */
	const char *message;
	const char *detail;
	const char *hint;
	/* Its SQLSTATE. */
	char		state[5];
	/* Its position in characters from 1, or 0. */
	int32		position;
} Outcome;

static pg_noinline void
grow(Bytes *out, size_t more)
{
	size_t		capacity = 2 * out->capacity + more + 1024;
	char	   *data = realloc(out->data, capacity);

	if (data == NULL)
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
	out->data = data;
	out->capacity = capacity;
}

static inline void
put(Bytes *out, const void *from, size_t length)
{
	if (out->capacity - out->length < length)
		grow(out, length);
	memcpy(out->data + out->length, from, length);
	out->length += length;
}

static inline void
put_length(Bytes *out, size_t length)
{
	uint32		narrow = (uint32) length;

	put(out, &narrow, sizeof(narrow));
}

static inline void
put_tag(Bytes *out, uint16 tag)
{
	put(out, &tag, sizeof(tag));
}

static void
put_text(Bytes *out, const char *text)
{
	size_t		length = text == NULL ? 0 : strlen(text);

	put_length(out, length);
	put(out, text == NULL ? "" : text, length);
}

#define PUT(type, value) \
	{ \
		type		__value = (value); \
		put(out, &__value, sizeof(__value)); \
	}

#define OUT_TYPE(typename, typename_c) Bytes *

#define OUT_NODE(typename, typename_c, typename_underscore, typename_underscore_upcase, typename_cast, fldname) \
	put_tag(out, TAG_##typename_c); \
	_out##typename_c(out, (const typename_cast *) obj);

#define WRITE_INT_FIELD(msgtype, outname, outname_json, fldname) PUT(int32, node->fldname)
#define WRITE_UINT_FIELD(msgtype, outname, outname_json, fldname) PUT(uint32, node->fldname)
#define WRITE_UINT64_FIELD(msgtype, outname, outname_json, fldname) PUT(uint64, node->fldname)
#define WRITE_LONG_FIELD(msgtype, outname, outname_json, fldname) PUT(int64, node->fldname)
#define WRITE_FLOAT_FIELD(msgtype, outname, outname_json, fldname) PUT(double, node->fldname)
#define WRITE_BOOL_FIELD(msgtype, outname, outname_json, fldname) PUT(uint8, node->fldname ? 1 : 0)
#define WRITE_CHAR_FIELD(msgtype, outname, outname_json, fldname) PUT(char, node->fldname)
#define WRITE_ENUM_FIELD(msgtype, enumtype, outname, outname_json, fldname) \
	PUT(int32, _enumToInt##enumtype(node->fldname))
#define WRITE_STRING_FIELD(msgtype, outname, outname_json, fldname) put_text(out, node->fldname);

#define WRITE_LIST_FIELD(msgtype, outname, outname_json, fldname) _outList(out, node->fldname);

#define WRITE_BITMAPSET_FIELD(msgtype, outname, outname_json, fldname) \
	{ \
		int			__member = -1; \
		put_length(out, bms_num_members(node->fldname)); \
		while ((__member = bms_next_member(node->fldname, __member)) >= 0) \
			PUT(uint64, __member) \
	}

#define WRITE_NODE_PTR_FIELD(msgtype, outname, outname_json, fldname) _outNode(out, node->fldname);

#define WRITE_SPECIFIC_NODE_FIELD(msgtype, typename, typename_underscore, outname, outname_json, fldname) \
	PUT(uint8, 1) \
	_out##typename(out, &node->fldname);

/* The check is for long chains: UNION nests these fields alone. */
#define WRITE_SPECIFIC_NODE_PTR_FIELD(msgtype, typename, typename_underscore, outname, outname_json, fldname) \
	PUT(uint8, node->fldname != NULL) \
	if (node->fldname != NULL) \
	{ \
		check_stack_depth(); \
		_out##typename(out, node->fldname); \
	}

static void _outNode(Bytes *out, const void *obj);

static void
_outList(Bytes *out, const List *node)
{
	const ListCell *cell;

	put_length(out, list_length(node));
	foreach(cell, node)
		_outNode(out, lfirst(cell));
}

/* The raw parser makes no lists of numbers. */
static void
_outIntList(Bytes *out, const List *node)
{
	elog(ERROR, "unexpected list of numbers");
}

static void
_outOidList(Bytes *out, const List *node)
{
	elog(ERROR, "unexpected list of numbers");
}

static void
_outInteger(Bytes *out, const Integer *node)
{
	PUT(int32, node->ival)
}

static void
_outFloat(Bytes *out, const Float *node)
{
	put_text(out, node->fval);
}

static void
_outBoolean(Bytes *out, const Boolean *node)
{
	PUT(uint8, node->boolval ? 1 : 0)
}

static void
_outString(Bytes *out, const String *node)
{
	put_text(out, node->sval);
}

static void
_outBitString(Bytes *out, const BitString *node)
{
	put_text(out, node->bsval);
}

static void
_outAConst(Bytes *out, const A_Const *node)
{
	PUT(int32, node->location)
	if (node->isnull)
	{
		PUT(uint8, 0)
		return;
	}
	switch (nodeTag(&node->val.node))
	{
		case T_Integer:
			PUT(uint8, 1)
			_outInteger(out, &node->val.ival);
			break;
		case T_Float:
			PUT(uint8, 2)
			_outFloat(out, &node->val.fval);
			break;
		case T_Boolean:
			PUT(uint8, 3)
			_outBoolean(out, &node->val.boolval);
			break;
		case T_String:
			PUT(uint8, 4)
			_outString(out, &node->val.sval);
			break;
		case T_BitString:
			PUT(uint8, 5)
			_outBitString(out, &node->val.bsval);
			break;
		default:
			elog(ERROR, "unrecognized constant: %d", (int) nodeTag(&node->val.node));
	}
}

#include "src/include/pg_query_enum_defs.c"
#include "src/include/pg_query_outfuncs_defs.c"

static void
_outNode(Bytes *out, const void *obj)
{
	check_stack_depth();

	if (obj == NULL)
	{
		put_tag(out, 0);
		return;
	}

	switch (nodeTag(obj))
	{
		#include "src/include/pg_query_outfuncs_conds.c"

		default:
			elog(ERROR, "unrecognized node type: %d", (int) nodeTag(obj));
	}
}

/*
 * Parses a text. Each call needs a call of raw_parse_end on the same thread, before the next call
 * and before any other call of the library.
 */
void
raw_parse_begin(const char *text, Outcome *outcome)
{
	MemSet(outcome, 0, sizeof(*outcome));
	outcome->context = pg_query_enter_memory_context();

	PG_TRY();
	{
		Bytes	   *out = &outcome->tree;
		List	   *statements = raw_parser(text, RAW_PARSE_DEFAULT);
		const ListCell *cell;

		put_length(out, list_length(statements));
		foreach(cell, statements)
			_outRawStmt(out, lfirst(cell));
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(outcome->context);
		error = CopyErrorData();
		outcome->message = error->message == NULL ? "" : error->message;
		outcome->detail = error->detail;
		outcome->hint = error->hint;
		for (int i = 0; i < 5; i++)
			outcome->state[i] = PGUNSIXBIT(error->sqlerrcode >> (6 * i));
		outcome->position = error->cursorpos;
		FlushErrorState();
	}
	PG_END_TRY();
}

/* Frees the memory of a parse. */
void
raw_parse_end(Outcome *outcome)
{
	free(outcome->tree.data);
	pg_query_exit_memory_context(outcome->context);
}
