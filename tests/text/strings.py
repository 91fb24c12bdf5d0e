"""Strings to compare tokenizers on: prose in many scripts, code, numbers, spaces, emoji, accents,
control characters, look-alikes of special tokens, random Unicode, and mixtures of all of it.

The same seed gives the same strings.
"""
import random
import unicodedata

PROSE = {
    "English": "The quick brown fox didn't jump; it's said that they've seen we'll-known dogs, isn't it? I'm sure.",
    "French": "L'été dernier, j'ai mangé des crêpes à la crème brûlée chez Noël – c'était « délicieux » !",
    "German": "Die größte Überraschung: Straßenbahnen fahren über Äcker, während Öl fließt und Füße schmerzen.",
    "Spanish": "¿Cómo estás, niño? ¡Mañana habrá pingüinos en la plaza! El año pasado fue único.",
    "Polish": "Zażółć gęślą jaźń. Źdźbło trawy łaskocze żółwia w Łodzi, a śnieg pada ćwierć dnia.",
    "Turkish": "İstanbul'da ılık bir gün; Iğdır'ın şekeri çok güzel. DİYARBAKIR ığıl ığıl akıyor.",
    "Vietnamese": "Tiếng Việt có nhiều dấu thanh: ngã, hỏi, sắc, huyền, nặng. Phở bò ở Hà Nội rất ngon.",
    "Russian": "Съешь ещё этих мягких французских булок, да выпей чаю. Ёлка, подъезд и мышь.",
    "Greek": "Ο γρήγορος αλεπού πηδάει πάνω από το τεμπέλικο σκυλί. Ἐν ἀρχῇ ἦν ὁ λόγος, ΐ ΰ.",
    "Hebrew": "בְּרֵאשִׁית בָּרָא אֱלֹהִים אֵת הַשָּׁמַיִם וְאֵת הָאָרֶץ. שלום עולם!",
    "Arabic": "الثعلب البني السريع يقفز فوق الكلب الكسول. مَرْحَبًا بِالْعَالَمِ، كيف حالك؟ ﷺ",
    "Persian": "می‌خواهم کتاب‌های فارسی بخوانم؛ گربه‌ها پنجره را دوست دارند. ۱۲۳۴",
    "Hindi": "तेज़ भूरी लोमड़ी आलसी कुत्ते के ऊपर कूदती है। क्षत्रिय ज्ञान श्री ॐ १२३",
    "Bengali": "আমার সোনার বাংলা, আমি তোমায় ভালোবাসি। ক্ষমা, জ্ঞান, স্ত্রী ১২৩",
    "Tamil": "தமிழ் மொழி மிகவும் பழமையானது. கொக்கு பறக்கிறது. க்ஷ ஸ்ரீ",
    "Thai": "ภาษาไทยไม่มีช่องว่างระหว่างคำ น้ำใจดี ๑๒๓ ผู้ใหญ่บ้าน",
    "Georgian": "ყველა ადამიანი იბადება თავისუფალი და თანასწორი. ᲛᲗᲐᲕᲠᲣᲚᲘ",
    "Amharic": "ሰላም ለዓለም። ኢትዮጵያ ውስጥ ብዙ ቋንቋዎች አሉ፤ ፩፪፫",
    "Chinese": "我能吞下玻璃而不伤身体。天地玄黃，宇宙洪荒！「你好」，世界；２０２４年。㐀㐁𠀀𠮷𪚥",
    "Japanese": "いろはにほへと ちりぬるを。カタカナ、ﾊﾝｶｸ、漢字が混ざる。がぎぐげご　か\u3099き\u3099",
    "Korean": "다람쥐 헌 쳇바퀴에 타고파. 한글은 훌륭하다! 각각 ㄱㄴㄷ \u1112\u1161\u11ab\u1100\u1173\u11af",
    "Tibetan": "བོད་ཡིག་ནི་སྐད་ཡིག་ཅིག་རེད། ༡༢༣",
    "Cherokee": "ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ ꭰꭱꭲ",
    "Burmese": "မြန်မာဘာသာစကား၊ ဂဏန်း ၁၂၃။",
    "Khmer": "ភាសាខ្មែរ គឺជាភាសា ១២៣។",
}

CODE = [
    "def f(x, *args, **kwargs):\n    return {k: v for k, v in zip(x, args)}  # comment\n\n\n",
    "for (int i = 0; i < n; ++i) {\n\tsum += a[i]->value * 0x1F;\n}\r\n",
    "SELECT * FROM t WHERE a != 'b' AND c >= 10.5e-3;",
    "<div class=\"a\">&nbsp;</div>\n<!-- x -->",
    "#include <vector>\nstd::vector<int32_t> v{1,2,3};\n",
    "x = y ?? z?.w!; // TODO(me): @param $foo #bar __init__ snake_case camelCase HTTPServer2",
    "{\"key\": [1, -2.5, null, true], \"s\": \"\\u00e9\\n\"}",
    "\\frac{a}{b} + \\sum_{i=0}^{\\infty} x^{i}",
    "https://example.com/a?b=c&d=%20e#frag user@host.org C:\\Windows\\System32",
    "fn main() { println!(\"{:?}\", vec![1u8; 10]); }",
    "if(a&&b||!c){return~d^e;}else{g<<=2;h>>=3;}",
]
NUMBERS = ["0", "12", "123", "1234", "12345678901234567890", "3.14159", "1,000,000", "1e-10", "２３", "½", "Ⅷ",
           "①", "٣٤٥", "2024-01-31T12:34:56Z", "+49 (0)30 1234", "0b1010", "१२३", "x²+y³", "99%", "$5.00", "𝟘𝟙"]
SPACES = [" ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", "\t\t", " \n ", "\n \n", "\u00a0", "\u3000", "\u2003",
          "\u200b", "\u2028", "\u2029", "\u0085", "\v", "\f", "\u180e", "\u202f", " " * 17, "\n" * 9, "\r", "\u1680"]
EMOJI = ["😀", "👩‍💻", "👨‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪🇫🇷", "👍🏽", "❤️", "1️⃣", "🧑🏿‍🚀", "☺", "©", "™", "🫠", "🪿", "🙂‍↔️"]
ACCENTS = ["e\u0301", "a\u0308\u0323", "o\u0302\u0301", "\u0301", "q\u0307\u0323", "\u1e9b\u0323", "Å", "\u212b", "ﬁ",
           "ﬀ", "①", "Ω", "\u2126", "ǆ", "ſ", "K", "\u0345", "a\u0315\u0300\u05ae\u0062", "\u0f73", "\u0f71\u0f72",
           "\u1100\u1161", "\uac00\u11a8", "\u0958", "\u2adc", "\ufb1d", "\u0344", "\u09c7\u09be", "\u0d46\u0d3e"]
CONTROL = ["\x00", "\x01", "\x08", "\x0b", "\x1b[31m", "\x7f", "\x80", "\x9f", "\ufeff", "\ufffd", "\ufffe", "\uffff",
           "\u200d", "\u200c", "\u202e", "\u2066", "\u00ad", "\U000e0001", "\U0010ffff"]
LOOKALIKES = ["<s>", "</s>", "<unk>", "<pad>", "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|eot_id|>", "[INST]",
              "[/INST]", "<<SYS>>", "<|im_start|>user\n", "<|im_star", "im_end|>", "<tool_call>", "</tool_call>", "< s>",
              "<|im_start|><|im_end|>", "<0x0A>", "<0xE6>", "<0xZZ>", "▁", "▁▁", "Ġ", "Ċ", "<bos>", "<eos>", "<mask>",
              "<|fim_prefix|>", "<｜end▁of▁sentence｜>", "<|begin_of_text|>", "<start_of_turn>", " <s> ", "<s></s>",
              "<|user|>", "<|assistant|> ", "<|system|>\n", "<repo_name>", "<file_sep>", "[MASK]", " [MASK] ", "a[MASK]b"]
CONTRACTIONS = ["'s", "'S", "'t", "'re", "'RE", "'Ve", "'ll", "'d", "'D", "'m", "'ſ", "’s", "''", "'", "'sé", "'lla"]


def _random_character(rng):
    kind = rng.random()
    if kind < 0.25:
        code = rng.randrange(0x20, 0x7F)
    elif kind < 0.45:
        code = rng.randrange(0x80, 0x3000)
    elif kind < 0.65:
        code = rng.randrange(0x3000, 0xFFFF)
    elif kind < 0.85:
        code = rng.randrange(0x10000, 0x33480)
    elif kind < 0.93:
        code = rng.randrange(0x1F000, 0x1FB00)
    else:
        code = rng.randrange(0, 0x110000)
    return "�" if 0xD800 <= code < 0xE000 else chr(code)


def _random_text(rng):
    if rng.random() < 0.3:  # one neighbourhood, as real scripts are
        start = rng.choice([0x80, 0x300, 0x600, 0x900, 0xD00, 0x1B00, 0x1D00, 0x2000, 0xA600, 0x10C00, 0x11000, 0x11300,
                            0x16D00, 0x1E000, 0x1F900, 0x2EBF0, 0x31340, 0x323A0])
        return "".join(chr(start + rng.randrange(0x100)) for _ in range(rng.randrange(1, 12)))
    return "".join(_random_character(rng) for _ in range(rng.randrange(1, 20)))


def _prose(rng):
    words = PROSE[rng.choice(list(PROSE))].split(" ")
    start = rng.randrange(len(words))
    text = " ".join(words[start:start + rng.randrange(1, 9)])
    style = rng.random()
    if style < 0.1:
        text = text.upper()
    elif style < 0.15:
        text = text.title()
    elif style < 0.25:
        text = unicodedata.normalize(rng.choice(["NFD", "NFKD", "NFKC"]), text)
    elif style < 0.3 and len(text) > 2:
        cut = rng.randrange(len(text))
        text = text[cut:] + text[:cut]
    return text


def _repeat(rng):
    unit = rng.choice(["a", " ", "\n", "=", "-", "ab", "é", "漢", "1", "'", "\t", "▁", "😀", "\u0301", "haha", "<"])
    return unit * rng.choice([2, 3, 5, 8, 13, 40, 150])


def _fragment(rng):
    kind = rng.random()
    if kind < 0.40:
        return _prose(rng)
    if kind < 0.50:
        code = rng.choice(CODE)
        start = rng.randrange(len(code))
        return code[start:start + rng.randrange(1, 60)]
    if kind < 0.90:
        return rng.choice(rng.choice([NUMBERS, SPACES, SPACES, EMOJI, ACCENTS, CONTROL, LOOKALIKES, CONTRACTIONS]))
    if kind < 0.94:
        return _repeat(rng)
    return _random_text(rng)


def make_strings(count, seed, extra=()):
    """`count` different strings; `extra`: more look-alikes, such as a tokenizer's own special tokens."""
    rng = random.Random(seed)
    strings = [""] + list(PROSE.values()) + CODE + NUMBERS + SPACES + EMOJI + ACCENTS + CONTROL + LOOKALIKES
    strings = list(dict.fromkeys(strings))[:count]
    seen = set(strings)
    while len(strings) < count:
        parts = []
        for _ in range(rng.choice([1, 1, 2, 3, 4, 6, 10])):
            if extra and rng.random() < 0.15:
                parts.append(rng.choice(extra))
            else:
                parts.append(_fragment(rng))
        text = rng.choice(["", "", " ", "\n"]).join(parts)
        if text not in seen:
            seen.add(text)
            strings.append(text)
    return strings
