// SPDX-License-Identifier: MIT
// A stock service in C++: virtual commands over a std::map, a recursive-descent parser, std::sort
// with lambdas. Its own quick_sort takes the last element as the pivot: on a history that is in
// order already it recurses once for each entry. That is the slow iteration.
#include "sample.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace shop
{

struct Item {
	long quantity = 0;
	long price = 0;
};

struct Sale {
	long quantity, price, days;

	// Divides: a comparison costs time rather than branches, of which a trace holds only so
	// many.
	long rate() const
	{
		return quantity * price / days;
	}
};

struct Stock {
	std::map<std::string, Item> items;
};

// expression := term { '+' term };  term := factor { '*' factor };  factor := number | '('
// expression ')'
class Parser
{
      public:
	explicit Parser(const std::string &text) : at_(text.c_str())
	{
	}

	TRACED long expression()
	{
		long value = term();

		while (accept('+'))
			value += term();
		return value;
	}

      private:
	TRACED long term()
	{
		long value = factor();

		while (accept('*'))
			value *= factor();
		return value;
	}

	TRACED long factor()
	{
		if (accept('(')) {
			long value = expression();

			accept(')');
			return value;
		}
		long value = 0;
		while (*at_ >= '0' && *at_ <= '9')
			value = value * 10 + (*at_++ - '0');
		return value;
	}

	bool accept(char c)
	{
		if (*at_ != c)
			return false;
		at_++;
		return true;
	}

	const char *at_;
};

template <typename Value, typename Less>
TRACED Value *partition_last(Value *begin, Value *end, const Less &less)
{
	Value *pivot = end - 1, *store = begin;

	for (Value *v = begin; v != pivot; v++)
		if (less(*v, *pivot))
			std::swap(*v, *store++);
	std::swap(*store, *pivot);
	return store;
}

template <typename Value, typename Less>
TRACED void quick_sort(Value *begin, Value *end, const Less &less)
{
	while (end - begin > 1) {
		Value *pivot = partition_last(begin, end, less);

		quick_sort(begin, pivot, less);
		begin = pivot + 1;
	}
}

class Command
{
      public:
	virtual ~Command() = default;
	virtual long run(Stock &stock) const = 0;
};

class Restock final : public Command
{
      public:
	Restock(std::string name, const std::string &price) : name_(std::move(name)), price_(price)
	{
	}

	TRACED long run(Stock &stock) const override
	{
		Item &item = stock.items[name_];

		item.price = Parser(price_).expression();
		return ++item.quantity * item.price;
	}

      private:
	std::string name_, price_;
};

// The dearest of a handful of offers.
class Dearest final : public Command
{
      public:
	explicit Dearest(uint64_t *random) : random_(random)
	{
	}

	TRACED long run(Stock &stock) const override
	{
		long offers[5];

		for (long &offer : offers)
			offer = static_cast<long>(sample__random(random_) % stock.items.size());
		std::sort(std::begin(offers), std::end(offers),
			  [](long a, long b) { return a > b; });
		return offers[0];
	}

      private:
	uint64_t *random_;
};

class Rank final : public Command
{
      public:
	explicit Rank(std::vector<Sale> &history) : history_(history)
	{
	}

	TRACED long run(Stock &) const override
	{
		quick_sort(history_.data(), history_.data() + history_.size(),
			   [](const Sale &a, const Sale &b) { return a.rate() < b.rate(); });
		return history_.back().rate();
	}

      private:
	std::vector<Sale> &history_;
};

class Service
{
      public:
	explicit Service(const sample &options)
	    : options_(options), history_(options.table_size), random_(88172645463325252u)
	{
		for (unsigned i = 0; i < 8; i++)
			stock_.items["item-" + std::to_string(i)].price = i;
		for (unsigned i = 0; i < history_.size(); i++)
			history_[i] = {static_cast<long>(i), 30, 7};
	}

	TRACED std::unique_ptr<Command> next_command()
	{
		uint64_t random = sample__random(&random_);

		if (random & 1)
			return std::make_unique<Dearest>(&random_);
		return std::make_unique<Restock>(
			std::string("item-") + char('0' + (random >> 8) % 8), "(1+2)*7");
	}

	TRACED void answer(const Command &command)
	{
		std::string reply = "total ";
		long value = command.run(stock_);

		do {
			reply += static_cast<char>('0' + value % 10);
		} while (value /= 10);
		bytes_out_ += reply.size();
	}

	TRACED void serve(uint64_t iteration)
	{
		for (uint64_t i = 1; i < options_.batch; i++)
			answer(*next_command());
		if (iteration % options_.slow_every == 0)
			answer(Rank(history_));
		else
			answer(*next_command());
	}

      private:
	sample options_;
	Stock stock_;
	std::vector<Sale> history_; // in order, and stays so: each Rank meets the worst case
	uint64_t random_;
	uint64_t bytes_out_ = 0;
};

} // namespace shop

// C linkage, so that the name is the same in every sample.
extern "C" TRACED void one_iter(shop::Service *service, uint64_t iteration)
{
	service->serve(iteration);
}

int main(int argc, char **argv)
{
	sample native = {}, small = {}, options;

	native.slow_every = 1000;
	native.table_size = 2500;
	native.batch = 200;
	native.pause_ns = 1000000;
	small.slow_every = 25;
	small.table_size = 34;
	small.batch = 1;
	sample__init(&options, argv, &native, &small);

	shop::Service service(options);
	sample__announce();
	while (sample__next(&options))
		one_iter(&service, options.done);
	sample__fini(&options);
	return 0;
}
