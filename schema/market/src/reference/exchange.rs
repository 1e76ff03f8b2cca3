//! Exchanges: ISO 10383 market identifier codes, names, and look-up by common names.

use super::spelling::plain;

/// Exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// Market identifier code, served in responses, for example `XNYS`.
    pub mic: &'static str,
    /// Name of the exchange.
    pub name: &'static str,
    /// Further names in lower case without blanks and punctuation.
    aliases: &'static [&'static str],
}

macro_rules! exchanges {
    ($($mic:literal $name:literal [$($alias:literal)*];)*) => {
        /// Known exchanges. The exchanges of the United States come first.
        static ALL: &[Exchange] = &[$(Exchange { mic: $mic, name: $name, aliases: &[$($alias),*] }),*];
    };
}

exchanges! {
    "XNYS" "New York Stock Exchange" ["nyse" "newyorkstockexchangeinc" "nyq" "newyork"];
    "XNAS" "Nasdaq" ["nasdaqstockmarket" "nasdaqnms" "nasdaqgs" "nasdaqgm" "nasdaqcm" "nms" "ngm" "ncm" "nas"
        "nasdaqglobalselect" "nasdaqglobalselectmarket" "nasdaqglobalmarket" "nasdaqcapitalmarket" "xngs" "xnms" "xncm"];
    "ARCX" "NYSE Arca" ["arca" "nysearca" "pcx" "pacx" "archipelago" "nysearcaexchange"];
    "XASE" "NYSE American" ["amex" "nysemkt" "ase" "nyseamerican" "americanstockexchange"];
    "BATS" "Cboe BZX" ["cboebzx" "batsexchange" "cboe" "cboebzxexchange" "batstrading" "bzx" "cboebzxusequitiesexchange"];
    "IEXG" "Investors Exchange" ["iex" "investorsexchangellc"];
    "XCHI" "NYSE Chicago" ["chicagostockexchange" "chx"];
    "XPHL" "Nasdaq PHLX" ["phlx"];
    "XBOS" "Nasdaq BX" [];
    "OTCM" "OTC Markets" ["otc" "otcmarkets" "otcmkts" "otcgrey" "greymarket" "otcbb" "pnk" "pink" "pinksheets" "expertmarket" "nmfqs"];
    "OTCQ" "OTCQX" ["otcqx"];
    "OTCB" "OTCQB" ["otcqb"];
    "XTSE" "Toronto Stock Exchange" ["tsx" "toronto" "tor"];
    "XTSX" "TSX Venture Exchange" ["tsxv" "venture"];
    "NEOE" "Cboe Canada" ["neo" "neoexchange"];
    "XMEX" "Bolsa Mexicana de Valores" ["mexicanstockexchange" "bmv"];
    "BVMF" "B3" ["bovespa" "sao" "bmfbovespa" "xbsp"];
    "XLON" "London Stock Exchange" ["lse" "london"];
    "XPAR" "Euronext Paris" ["nyseeuronexteuronextparis" "paris" "euronextparissa"];
    "XAMS" "Euronext Amsterdam" ["euronextamsterdamnv" "amsterdam"];
    "XBRU" "Euronext Brussels" ["nyseeuronexteuronextbrussels" "brussels"];
    "XLIS" "Euronext Lisbon" ["nyseeuronexteuronextlisbon" "lisbon"];
    "XDUB" "Euronext Dublin" ["irishstockexchange" "irishstockexchangeallmarket" "dublin"];
    "XMIL" "Borsa Italiana" ["milan" "borsaitaliana" "euronextmilan"];
    "XETR" "Xetra" ["deutscheborse" "deutscheboersexetra"];
    "XFRA" "Frankfurt Stock Exchange" ["frankfurt" "deutscheborseag"];
    "XSWX" "SIX Swiss Exchange" ["sixswissexchangeag" "six" "zurich" "swx"];
    "XMAD" "Bolsa de Madrid" ["madrid" "bme" "mce"];
    "XSTO" "Nasdaq Stockholm" ["stockholm" "nasdaqomxnordic" "nasdaqomxstockholm"];
    "XHEL" "Nasdaq Helsinki" ["helsinki" "nasdaqomxhelsinkiltd"];
    "XCSE" "Nasdaq Copenhagen" ["copenhagen" "omxnordicexchangecopenhagenas"];
    "XOSL" "Oslo Børs" ["oslo" "osloborsasa" "euronextoslo"];
    "XWBO" "Wiener Börse" ["wienerboerseag" "vienna"];
    "XWAR" "Warsaw Stock Exchange" ["warsaw" "warsawstockexchangeequitiesmainmarket" "gpw"];
    "XIST" "Borsa Istanbul" ["istanbul" "istanbulstockexchange"];
    "XTAE" "Tel Aviv Stock Exchange" ["telaviv" "tase"];
    "XJSE" "Johannesburg Stock Exchange" ["johannesburg" "jse"];
    "XTKS" "Tokyo Stock Exchange" ["tokyo" "tse" "jpx"];
    "XHKG" "Hong Kong Stock Exchange" ["hkex" "hongkong" "hkse" "hongkongexchangesandclearingltd"];
    "XSHG" "Shanghai Stock Exchange" ["shanghai" "sse"];
    "XSHE" "Shenzhen Stock Exchange" ["shenzhen" "szse"];
    "XTAI" "Taiwan Stock Exchange" ["taiwan" "twse"];
    "XKRX" "Korea Exchange" ["korea" "krx" "koreaexchangestockmarket"];
    "XNSE" "National Stock Exchange of India" ["nse" "nationalstockexchangeofindialtd"];
    "XBOM" "BSE" ["bombay" "bombaystockexchange"];
    "XSES" "Singapore Exchange" ["sgx" "singapore"];
    "XASX" "Australian Securities Exchange" ["asx" "asxallmarkets" "australia"];
    "XNZE" "New Zealand Exchange" ["nzx" "newzealandexchangeltd"];
}

impl Exchange {
    /// All known exchanges.
    pub fn all() -> &'static [Self] {
        ALL
    }

    /// Exchange of a code or name; `None` if unknown.
    pub fn find(name: &str) -> Option<&'static Self> {
        let name = plain(name);
        ALL.iter().find(|exchange| {
            plain(exchange.mic) == name
                || plain(exchange.name) == name
                || exchange.aliases.contains(&name.as_str())
        })
    }

    /// Code, name and further names of the exchange.
    pub fn codes_and_names(&self) -> impl Iterator<Item = &'static str> {
        [self.mic, self.name].into_iter().chain(self.aliases.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_codes() {
        for (name, mic) in [
            ("XNYS", Some("XNYS")),
            ("NYSE", Some("XNYS")),
            ("New York Stock Exchange Inc.", Some("XNYS")),
            ("NASDAQ", Some("XNAS")),
            ("NYSE ARCA", Some("ARCX")),
            ("NYSE MKT", Some("XASE")),
            ("lse", Some("XLON")),
            ("US", None),
            ("", None),
        ] {
            let found = Exchange::find(name);
            assert_eq!(found.map(|exchange| exchange.mic), mic, "{name}");
            assert!(found.is_none_or(|exchange| Exchange::all().contains(exchange)), "{name}");
        }
    }

    #[test]
    fn a_name_means_one_exchange() {
        for exchange in ALL {
            for name in exchange.codes_and_names() {
                assert_eq!(Exchange::find(name), Some(exchange), "{name}");
            }
        }
    }
}
