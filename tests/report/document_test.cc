// One document, three readers: a terminal, a repository and a browser.
#include "report/document.h"

#include <gtest/gtest.h>

#include "report/page.h"

namespace tinyvllm {
namespace {

Table example() {
  return {{{"Name", Column::kLeft}, {"tok/s"}}, {{"a×b", "12.5"}, {"|<c>|", "7"}}, {"all", "19.5"}};
}

TEST(Document, TextIsAligned) {
  EXPECT_EQ(to_text(example()),
            "Name   tok/s\n"
            "------------\n"
            "a×b     12.5\n"
            "|<c>|      7\n"
            "------------\n"
            "all     19.5\n\n");
}

TEST(Document, MarkdownKeepsCellsInTheirColumns) {
  EXPECT_EQ(to_markdown({Heading{"Speed", 2}, example(), Paragraph{"Best: 12.5", true}}),
            "## Speed\n\n"
            "| Name | tok/s |\n|---|---:|\n| a×b | 12.5 |\n| \\|<c>\\| | 7 |\n| all | 19.5 |\n\n"
            "**Best: 12.5**\n\n");
}

TEST(Page, IsOneFileThatLoadsNothing) {
  const std::string html = Page("<t>", {example(), Code{"a < b"}}).html();
  EXPECT_NE(html.find("<title>&lt;t&gt;</title>"), std::string::npos);
  EXPECT_NE(html.find("<td class=\"l\">|&lt;c&gt;|</td>"), std::string::npos);
  EXPECT_NE(html.find("a &lt; b"), std::string::npos);
  for (const char* outside : {"http://", "https://", "<script", "<link", "url("}) {
    EXPECT_EQ(html.find(outside), std::string::npos) << outside;
  }
}

}  // namespace
}  // namespace tinyvllm
