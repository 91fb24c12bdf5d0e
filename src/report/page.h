// A report as one HTML file: styles inside, no scripts, nothing from the network, legible in light
// and dark and on paper. Built block by block, or from a whole document.
//
//   Page page("tinyvllm profile");
//   page.add(Heading{"Kernels"}).add(table).add(Figure{to_svg(chart)}).raw("<p>…</p>");
//   write_text_file(path, page.html());
#pragma once

#include <string>
#include <string_view>

#include "report/document.h"
#include "report/text_file.h"

namespace tinyvllm {

class Page {
 public:
  explicit Page(std::string title) : title_(std::move(title)) {}
  Page(std::string title, const Document& document) : title_(std::move(title)) {
    for (const Block& block : document) add(block);
  }

  Page& add(const Block& block);
  Page& raw(std::string_view html);  // already HTML
  std::string html() const;

 private:
  std::string title_;
  std::string body_;
};

std::string html_escape(std::string_view text);  // for text and for attributes

}  // namespace tinyvllm
