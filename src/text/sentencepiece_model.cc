#include "text/sentencepiece_model.h"

#include <optional>

#include "text/protobuf.h"

namespace tinyvllm {
namespace {

// Calls visit(field) for each field of a message; `name` stands before every error.
template <class Visit>
Status for_each_field(std::string_view message, std::string_view name, const Visit& visit) {
  ProtobufReader reader(message);
  while (true) {
    Result<std::optional<ProtobufField>> next = reader.next();
    if (!next.ok()) return error("tokenizer.model: ", name, ": ", next.message());
    if (!next.value().has_value()) return Status();
    TRY(visit(*next.value()));
  }
}

Status read_piece(std::string_view message, SentencePieceVocabulary& vocabulary) {
  SentencePieceVocabulary::Piece piece;
  TRY(for_each_field(message, "pieces", [&](const ProtobufField& field) -> Status {
    if (field.number == 1) {
      TRY_ASSIGN(piece.text, field.as_bytes("tokenizer.model: pieces.piece"));
    } else if (field.number == 2) {
      TRY_ASSIGN(piece.score, field.as_float("tokenizer.model: pieces.score"));
    } else if (field.number == 3) {
      TRY_ASSIGN(const int64_t type, field.as_integer("tokenizer.model: pieces.type"));
      if (type < 1 || type > 6) {
        return error("tokenizer.model: pieces[", vocabulary.pieces.size(), "].type: ", type,
                     " is not known; known are 1 to 6");
      }
      piece.type = static_cast<SentencePieceVocabulary::Type>(type);
    }
    return Status();
  }));
  if (piece.text.empty()) {
    return error("tokenizer.model: pieces[", vocabulary.pieces.size(), "] is empty");
  }
  vocabulary.pieces.push_back(piece);
  return Status();
}

Status read_model_type(const ProtobufField& field, SentencePieceVocabulary& vocabulary) {
  TRY_ASSIGN(const int64_t type, field.as_integer("tokenizer.model: trainer_spec.model_type"));
  if (type != 1 && type != 2) {
    return error("tokenizer.model: trainer_spec.model_type: ", type,
                 " is not supported; known are 1 (unigram) and 2 (BPE)");
  }
  vocabulary.is_bpe = type == 2;
  return Status();
}

Status read_trainer_spec(std::string_view message, SentencePieceVocabulary& vocabulary) {
  return for_each_field(message, "trainer_spec", [&](const ProtobufField& field) -> Status {
    if (field.number == 3) return read_model_type(field, vocabulary);
    if (field.number == 24) {
      TRY_ASSIGN(vocabulary.space_is_suffix,
                 field.as_boolean("tokenizer.model: trainer_spec.treat_whitespace_as_suffix"));
    } else if (field.number == 35) {
      TRY_ASSIGN(vocabulary.byte_fallback,
                 field.as_boolean("tokenizer.model: trainer_spec.byte_fallback"));
    } else if (field.number == 44) {
      TRY_ASSIGN(const std::string_view surface,
                 field.as_bytes("tokenizer.model: trainer_spec.unk_surface"));
      vocabulary.unknown_surface = surface;
    }
    return Status();
  });
}

Status read_normalizer_spec(std::string_view message, SentencePieceVocabulary& vocabulary) {
  return for_each_field(message, "normalizer_spec", [&](const ProtobufField& field) -> Status {
    if (field.number == 2) {
      TRY_ASSIGN(vocabulary.charsmap,
                 field.as_bytes("tokenizer.model: normalizer_spec.precompiled_charsmap"));
    } else if (field.number == 3) {
      TRY_ASSIGN(vocabulary.add_dummy_prefix,
                 field.as_boolean("tokenizer.model: normalizer_spec.add_dummy_prefix"));
    } else if (field.number == 4) {
      TRY_ASSIGN(vocabulary.remove_extra_whitespaces,
                 field.as_boolean("tokenizer.model: normalizer_spec.remove_extra_whitespaces"));
    } else if (field.number == 5) {
      TRY_ASSIGN(vocabulary.escape_whitespaces,
                 field.as_boolean("tokenizer.model: normalizer_spec.escape_whitespaces"));
    }
    return Status();
  });
}

Status refuse_denormalizer(std::string_view message) {
  return for_each_field(message, "denormalizer_spec", [&](const ProtobufField& field) -> Status {
    if (field.number != 2 || field.bytes.empty()) return Status();
    return error("tokenizer.model: denormalizer_spec.precompiled_charsmap: not supported");
  });
}

}  // namespace

Result<SentencePieceVocabulary> read_sentencepiece_model(std::string_view bytes) {
  SentencePieceVocabulary vocabulary;
  TRY(for_each_field(bytes, "the file", [&](const ProtobufField& field) -> Status {
    if (field.number < 1 || field.number > 5) return Status();
    TRY_ASSIGN(const std::string_view message,
               field.as_bytes("tokenizer.model: a part of the file"));
    if (field.number == 1) return read_piece(message, vocabulary);
    if (field.number == 2) return read_trainer_spec(message, vocabulary);
    if (field.number == 3) return read_normalizer_spec(message, vocabulary);
    if (field.number == 5) return refuse_denormalizer(message);
    return Status();
  }));
  if (vocabulary.pieces.empty()) return error("tokenizer.model: no pieces");
  return vocabulary;
}

}  // namespace tinyvllm
